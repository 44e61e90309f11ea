"""Selective layers against their published recurrences."""

from copy import deepcopy

import flint
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import fsa2lrnn
from experiments import selective_fixtures
from experiments.selective_fixtures import OUT
from fsa2lrnn import certify, check, falsify, prove_equivalent, repair
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.extra.learning import learn
from fsa2lrnn.extra.selective import rounding
from fsa2lrnn.extra.selective.fla import to_fla
from fsa2lrnn.extra.selective.hard import HardDeltaProductConfig, HardPDSSMConfig, HardSliceConfig, permutation
from fsa2lrnn.extra.selective.matrix_scan import RankOneSteps, matrix_scan, transition
from fsa2lrnn.lrnn import LRNN, LRNNConfig
from fsa2lrnn.lrnn.layer_checks import check_layer
from fsa2lrnn.lrnn.layers import LAYERS, Columns, Shape, layer_named, name_of
from fsa2lrnn.lrnn.rounding import RoundedNumbers
from fsa2lrnn.lrnn.switched import switched, table_error
from fsa2lrnn.training.settings import preset
from fsa2lrnn.training.train import train
from fsa2lrnn.verdicts import Proved, Refuted
from fsa2lrnn.verification.falsify import Budget

STATE = {"reads": "state", "conv": 0}
GATED = [
    ("gated_deltanet", {}),
    ("gated_deltanet", {"conv": 0, "gate": False, "neg_eigval": True}),
    ("deltaproduct", {"factors": 3}),
    ("gated_deltaproduct", {"expand_v": 0.5}),
    ("kda", {}),
    ("gdn2", {"conv": 0}),
    ("mamba2", {}),
    ("mamba2", {"conv": 0}),
    ("mamba3", {"rope": 1.0}),
    ("rwkv7", {"rank": 3}),
    ("pd_ssm", {"dictionary": 3}),
    ("slstm", {}),
    ("slstm", {"conv": 0}),
]
STATES = [
    ("gated_deltanet", {**STATE, "neg_eigval": True}),
    ("deltaproduct", STATE),
    ("gated_deltaproduct", {**STATE, "factors": 3}),
    ("kda", {**STATE, "neg_eigval": True}),
    ("gdn2", STATE),
    ("mamba2", STATE),
    ("rwkv7", {"reads": "state", "rank": 3}),
    ("pd_ssm", {"reads": "state"}),
    ("slice", {}),
    ("slice", {"form": "sparse", "density": 0.5}),
    ("slice", {"form": "hadamard"}),
    ("slice", {"form": "diagonal"}),
    ("mingru", {}),
]


def config(name, options):
    return layer_named(name).Config.of_shape(Shape(2, 4), options)


def model_with(name, options, dtype):
    torch.manual_seed(0)
    model = LRNN(LRNNConfig("abc", (0, 1), (config(name, options),), embedding_dim=8)).to(dtype)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.2 * torch.randn_like(weight)
    return model


@pytest.mark.parametrize("path", selective_fixtures.files(), ids=lambda path: path.stem)
def test_equal_to_the_published_code(path):
    assert max(selective_fixtures.errors(path).values()) < 1e-6


def test_numbers_of_each_layer_are_compared():
    compared = {selective_fixtures.about(path)["layer"] for path in selective_fixtures.files()}
    assert compared == {name for name, _ in GATED + STATES}


@pytest.mark.parametrize(("name", "options"), GATED + STATES)
def test_all_ways_agree(sequences, name, options):
    sequences(config(name, options), lengths=(1, 39))


@pytest.mark.parametrize(("name", "options"), GATED[::3] + STATES[::4])
def test_gradients_of_rows_by_index(on_letters, name, options):
    if config(name, options).width == 8:
        on_letters(config(name, options), words=4)


@pytest.mark.parametrize(("name", "options"), [GATED[0], GATED[8], GATED[10], GATED[11]])
def test_models_of_two_layers(model_of, name, options):
    model_of(config(name, options), connection="full-residual", layer_norm=True)


@pytest.mark.parametrize(("name", "options"), STATES + GATED[::2])
def test_declarations_hold(name, options):
    check_layer(model_with(name, options, torch.float32), 0)


def in_other_order(layer, u):
    """The tables of a copy of the layer that reads the coordinates of u in another order."""
    order = torch.randperm(u.shape[-1])
    copy = deepcopy(layer)
    with torch.no_grad():
        for name, weight in [*copy.named_parameters(), *copy.named_buffers()]:
            if name in ("vf_A", "mask"):
                weight[1:] = weight[1:][order].clone()
            elif weight.ndim == 2 and weight.shape[1] == len(order) and name != "x0":
                weight.copy_(weight[:, order])
        return copy.tables(u[:, order])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("name", "options"), STATES)
@torch.no_grad()
def test_tables_of_any_evaluation_lie_within_the_bounds(name, options, dtype):
    model = model_with(name, options, dtype)
    tables, errors = switched(model), table_error(model)
    assert 0 < errors[0].max() < 2e4 * torch.finfo(dtype).eps
    assert errors[1].max() < 2e4 * torch.finfo(dtype).eps
    layer, u = model.recurrences[0], model.first_inputs()
    exact = deepcopy(layer).double().tables(u.double())
    alone = [torch.cat(rows) for rows in zip(*(layer.tables(row) for row in u.split(1)), strict=True)]
    many = [table[-len(u) :] for table in layer.tables(u.repeat(333, 1))]
    for A, v in (exact, alone, many, *(in_other_order(layer, u) for _ in range(5))):
        assert ((A.double() - tables.A).abs() <= errors[0]).all()
        assert ((v.double() - tables.v).abs() <= errors[1]).all()
    for weight in layer.parameters():  # a mutant: weights that are a thousandth larger
        weight.mul_(1.001)
    A, v = layer.tables(u)
    assert ((A.double() - tables.A).abs() > errors[0]).any() or ((v.double() - tables.v).abs() > errors[1]).any()


FUNCTIONS = {
    torch.tanh: lambda x: x.tanh(),
    torch.sin: lambda x: x.sin(),
    torch.cos: lambda x: x.cos(),
    torch.nn.functional.logsigmoid: lambda x: -(1 + (-x).exp()).log(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bounds_of_functions_hold_in_300_bits(dtype):
    x = torch.linspace(-30, 30, 600).to(dtype)
    numbers, rows = RoundedNumbers.exact(x), RoundedNumbers.exact(x.view(100, 6))
    blurred = RoundedNumbers(numbers.mid, torch.full_like(numbers.mid, 1e-3), numbers.kind)
    with flint.ctx.workprec(300):
        arbs = [flint.arb(value) for value in x.tolist()]
        for function, exact in FUNCTIONS.items():
            for bound, shift in ((numbers, 0), (blurred, 1e-3), (blurred, -1e-3)):
                bound = rounding.tame(function, bound)
                for value, mid, off in zip(arbs, bound.mid.tolist(), bound.off.tolist(), strict=True):
                    assert abs(exact(value + shift) - mid) < off
            assert ((function(x).double() - bound.mid).abs() <= bound.off).all()
        p = rounding.softmax(rows)
        powers = [value.exp() for value in arbs]
        for i, (mid, off) in enumerate(zip(p.mid.flatten().tolist(), p.off.flatten().tolist(), strict=True)):
            assert abs(powers[i] / sum(powers[i - i % 6 : i - i % 6 + 6], flint.arb(0)) - mid) < off
    assert ((rows.mid.to(dtype).softmax(-1).double() - p.mid).abs() <= p.off).all()
    moved = rounding.softmax(RoundedNumbers(rows.mid, torch.full_like(rows.mid, 1e-2), rows.kind))
    for _ in range(100):
        shifted = rows.mid + 1e-2 * torch.randint(-1, 2, rows.mid.shape)
        assert ((shifted.softmax(-1) - moved.mid).abs() <= moved.off).all()


@pytest.mark.parametrize(
    "name", ["mamba2", "slice", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rwkv7", "pd_ssm"))]
)
def test_trained_models_are_certified_searched_and_repaired(name, tmp_path):
    options = {"mamba2": {**STATE, "expand_v": 1.0}, "slice": {}}.get(name, {"reads": "state"})
    task = "regex:(a|b)*a"
    source = MooreMachine.from_source(task)
    settings = preset(
        "quick", task, layer=name, options=options, steps=600, heads=2, block=4, connection="chain",
        normalisation="none", layer_norm=False, stop_at=None, schedule="cosine", seed=1,
    )  # fmt: skip
    model = train(settings, tmp_path).model
    certificate = certify(model, source, seconds=60)
    check(certificate, model)
    assert certificate.covers(1)  # what else is certified differs between processors, as training does
    verdict = falsify(model, source, Budget(seconds=2))
    assert not isinstance(verdict, Refuted) or not certificate.covers(len(verdict.word))
    if name != "slice":  # no rounding of its U to few binary places was found to do
        repaired = repair(model, source, mode="dyadic").model
        assert isinstance(prove_equivalent(repaired, source, empty_word=False), Proved)
    with torch.no_grad():  # a mutant: the outputs change places
        model.readout.weights.W2.copy_(model.readout.weights.W2.flip(0))
        model.readout.weights.b2.copy_(model.readout.weights.b2.flip(0))
    assert isinstance(falsify(model, source, Budget(seconds=2)), Refuted)
    with pytest.raises(Fsa2LrnnError, match="model"):
        check(certificate, model)


@pytest.mark.parametrize("name", [name for name, _ in STATES if name not in ("slice", "mingru", "pd_ssm")])
def test_published_layers_declare_no_tables(name):
    layer = layer_named(name).build(8, config(name, {}), Columns("none", 2.0))
    assert not layer.has_tables
    with pytest.raises(UnsupportedFormat, match="has no tables"):
        layer.tables(torch.zeros(3, 8))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gated_deltanet", {"reads": "state"}, "conv = 4: a number of letters, 0 with"),
        ("gated_deltanet", {"reads": "keys"}, "reads = 'keys': one of gated, state"),
        ("kda", {"expand_v": 0.3}, "4 keys take a whole number of values"),
        ("deltaproduct", {"factors": 0}, "a product has 1 factor or more"),
        ("mamba3", {"reads": "state"}, "Mamba-3 takes 0"),
        ("rwkv7", {"conv": 4}, "RWKV-7 has 0 and 1"),
        ("rwkv7", {"rank": 0}, "needs a positive whole number"),
        ("pd_ssm", {"dictionary": 0}, "PD-SSM needs a positive whole number"),
        ("slice", {"form": "full"}, "one of block, sparse, hadamard, diagonal"),
        ("slice", {"density": 0}, "out of range"),
    ],
)
def test_misfits_are_refused(name, options, message):
    with pytest.raises(UnsupportedFormat, match=message):
        config(name, options)


CONFIGS = [
    HardPDSSMConfig(3, "table", size=4),
    HardPDSSMConfig(3, "table", size=4, signs=True),
    HardDeltaProductConfig(3, "table", size=4),
    HardSliceConfig(3, "table", size=4),
]


def layer_of(config):
    torch.manual_seed(0)
    layer = LAYERS[name_of(config)](5, config)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(torch.randn_like(weight))
    return layer


@pytest.mark.parametrize("config", CONFIGS)
def test_rows_copy_one_number_or_write_one(config):
    A, v = layer_of(config).tables(torch.eye(5))
    copies, writes = (A != 0).sum(-1), v != 0
    assert ((copies <= 1) & ~((copies == 1) & writes)).all()
    assert set(A.unique().tolist()) <= {-1.0, 0.0, 1.0}
    if not isinstance(config, HardPDSSMConfig):
        assert ((A != 0).sum(-2) <= 1).all()  # an exchange: no number goes to two places
    assert writes.any() == (isinstance(config, HardDeltaProductConfig))
    assert (A < 0).any() == (isinstance(config, HardPDSSMConfig) and config.signs)


@pytest.mark.parametrize("config", CONFIGS)
def test_every_scan_gives_the_same_bits(config):
    layer, index = layer_of(config), torch.randint(5, (4, 60))
    assert layer.starts_exact()
    assert layer.is_exact(torch.eye(5), 2.0**24)
    found = [layer(torch.eye(5), layer.initial_state(4), method, index)[0] for method in ("auto", *layer.methods)]
    assert all(torch.equal(x, found[0]) for x in found)
    with torch.no_grad():  # a mutant: a coordinate that doubles
        halved = layer.tables(torch.eye(5))
    layer.chosen = lambda _: (2 * halved[0], halved[1])
    assert not layer.is_exact(torch.eye(5), 2.0**24)


def test_a_permutation_takes_the_largest_entries_first_and_learns_as_sinkhorn_does():
    torch.manual_seed(0)
    logits = torch.randn(7, 4, 4, dtype=torch.float64, requires_grad=True)
    hard = permutation(logits, 0.5)
    assert torch.equal(hard.sum(-1), torch.ones(7, 4)) and torch.equal(hard.sum(-2), torch.ones(7, 4))  # noqa: PT018
    largest = logits.detach().flatten(1).argmax(1)
    assert (hard.flatten(1).gather(1, largest[:, None]) == 1).all()
    dy = torch.randn_like(hard)
    (found,) = torch.autograd.grad(hard, logits, dy)
    soft = (logits / 0.5).exp()
    for _ in range(8):
        soft = soft / soft.sum(-1, keepdim=True)
        soft = soft / soft.sum(-2, keepdim=True)
    (expected,) = torch.autograd.grad(soft, logits, dy)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("layer", ["hard_pd_ssm", "hard_slice"])
def test_learned_networks_are_proved(layer):
    learned = learn("task:group(S3)", layer=layer, block=3, steps=3_000)
    assert learned.is_proved
    source = MooreMachine.from_source("task:group(S3)")
    assert isinstance(prove_equivalent(learned.network, source), Proved)
    with torch.no_grad():  # a mutant: another permutation for one letter in every head
        learned.network.layers[0].transition.table[:, 0] *= -1
    assert isinstance(prove_equivalent(learned.network, source), Refuted)


def test_other_modules_are_refused_and_rounding_is_seen():
    config = HardSliceConfig(1, "relu", hidden=4, size=2)
    model = LRNN(LRNNConfig("ab", (0, 1), (config,), embedding_dim=3))
    layer, rows = model.recurrences[0], model.first_inputs().detach()
    assert layer.is_exact(rows, 2.0**24)
    with torch.no_grad():
        gate = layer.transition.weights
        gate.W2.copy_(gate.W2[:1].expand_as(gate.W2))
        gate.b2.copy_(gate.b2[:1].expand_as(gate.b2))
    assert not layer.is_exact(rows, 2.0**24)
    with pytest.raises(UnsupportedFormat, match="Linear is not one of GatedDeltaNet, GatedDeltaProduct"):
        fsa2lrnn.wrap_fla(nn.Linear(2, 2))
    module = stand_in("gated_deltanet")
    del module.conv_size
    with pytest.raises(UnsupportedFormat, match="GatedDeltaNet has no conv_size: this version"):
        fsa2lrnn.wrap_fla(module)
    with pytest.raises(UnsupportedFormat, match="the weights of KDALayer do not fit"):
        to_fla(fsa2lrnn.wrap_fla(stand_in("kda")), stand_in("gated_deltanet"))


SIZES = {"hidden_size": 8, "num_heads": 2, "head_dim": 4}
CONV = {"use_short_conv": True, "conv_size": 4, "num_v_heads": 2}
GDN = {**CONV, "head_v_dim": 8, "allow_neg_eigval": False, "use_gate": True}
MODULES = {
    "gated_deltanet": ("GatedDeltaNet", GDN),
    "deltaproduct": (
        "GatedDeltaProduct",
        {**CONV, "head_v_dim": 4, "allow_neg_eigval": True, "use_output_gate": True, "num_householder": 3,
         "use_forget_gate": False},
    ),
    "kda": ("KimiDeltaAttention", {**CONV, "head_v_dim": 4, "allow_neg_eigval": True, "safe_gate": False}),
    "gdn2": ("GatedDeltaNet2", {**CONV, "head_v_dim": 4, "allow_neg_eigval": False}),
    "rwkv7_fla": (
        "RWKV7Attention",
        {"layer_idx": 0, "head_v_dim": 4, "decay_low_rank_dim": 3, "a_low_rank_dim": 3, "gate_low_rank_dim": 5},
    ),
}  # fmt: skip


def stand_in(name, changes=None):
    """A module with the class name, settings and weights of fla's."""
    classname, settings = MODULES[name]
    module = type(classname, (nn.Module,), {})()
    for setting, value in {**SIZES, **settings, **(changes or {})}.items():
        setattr(module, setting, value)
    for key, weight in load_file(OUT / f"{name}.safetensors").items():
        if key.startswith("param."):
            *path, last = key.removeprefix("param.").split(".")
            place = module
            for part in path:
                if not hasattr(place, part):
                    place.add_module(part, nn.Module())
                place = place.get_submodule(part)
            place.register_parameter(last, nn.Parameter(weight.double()))
    return module


@pytest.mark.parametrize("name", MODULES)
def test_weights_there_and_back(name):
    module, numbers = stand_in(name), load_file(OUT / f"{name}.safetensors")
    layer = fsa2lrnn.wrap_fla(module)
    u = numbers["input"].double()
    torch.testing.assert_close(layer(u, layer.initial_state(len(u)))[0].float(), numbers["output"])
    before = {key: weight.clone() for key, weight in module.state_dict().items()}
    with torch.no_grad():
        for weight in module.parameters():
            weight.zero_()
    to_fla(layer, module)
    assert all(torch.equal(weight, before[key]) for key, weight in module.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_v_heads": 4}, "GatedDeltaNet with num_v_heads = 4: our layer gated_deltanet has 2"),
        ({"conv_bias": True}, "with conv_bias = True"),
        ({"use_gate": False}, "g_proj.weight is left over"),
        ({"hidden_size": 16}, r"q_proj.weight has shape \(8, 8\), not \(8, 16\)"),
    ],
)
def test_what_ours_lacks_is_refused(changes, message):
    with pytest.raises(UnsupportedFormat, match=message):
        fsa2lrnn.wrap_fla(stand_in("gated_deltanet", changes))


def drawn(length, n=1, columns=True, erases=True, speed=1.0, dtype=torch.float64, batch=2):
    torch.manual_seed(length)
    H, K, V = 3, 4, 5
    k = torch.nn.functional.normalize(torch.randn(batch, length, n, H, K, dtype=dtype), dim=-1)
    g = -speed * torch.rand(batch, length, n, H, K if columns else 1, dtype=dtype)
    a = -2 * torch.rand(batch, length, n, H, 1, dtype=dtype) * g.exp() * k if erases else None
    parts = [g, a, k, torch.randn(batch, length, n, H, V, dtype=dtype), torch.randn(batch, length, H, K, dtype=dtype)]
    leaves = [None if x is None else x.detach().requires_grad_() for x in parts]
    return RankOneSteps(*leaves), torch.randn(batch, H, V, K, dtype=dtype).requires_grad_()


def results(steps, state, method):
    outputs, last = matrix_scan(steps, state, method)
    leaves = [x for x in (*steps, state) if x is not None]
    loss = (outputs * outputs.detach().cos()).sum() + last.square().sum()
    return [outputs, last, *torch.autograd.grad(loss, leaves, allow_unused=True)]


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("erases", [True, False])
@pytest.mark.parametrize(("length", "n"), [(0, 1), (1, 2), (2, 1), (3, 3), (17, 1), (70, 2)])
def test_chunks_compute_what_the_loop_does(length, n, columns, erases):
    steps, state = drawn(length, n, columns, erases)
    for one, other in zip(results(steps, state, "chunked"), results(steps, state, "sequential"), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("speed", [20.0, 500.0])
def test_fast_decays_neither_overflow_nor_lose_digits(columns, speed):
    steps, state = drawn(40, columns=columns, speed=speed, dtype=torch.float32)
    for one, other in zip(results(steps, state, "chunked"), results(steps, state, "sequential"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_empty_batches_and_unknown_methods():
    steps, state = drawn(20, batch=0)
    assert [x.shape[0] for x in matrix_scan(steps, state, "chunked")] == [0, 0]
    with pytest.raises(UnsupportedFormat, match="scan method 'fused'"):
        matrix_scan(*drawn(3), "fused")


@pytest.mark.parametrize("erases", [True, False])
def test_a_transition_is_the_product_of_its_steps(erases):
    steps, state = drawn(1, 3, erases=erases)
    A, v = transition(RankOneSteps(*(None if x is None else x[:, 0] for x in steps)))
    torch.testing.assert_close(state @ A.mT + v, matrix_scan(steps, state, "sequential")[1])
