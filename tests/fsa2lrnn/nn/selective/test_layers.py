"""Selective layers against their published recurrences."""

import sys
from copy import deepcopy
from functools import partial

import flint
import pytest
import torch

from fsa2lrnn import Budget, MooreMachine, Proved, Refuted, certify, check, falsify, prove_equivalent, repair, train
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.learning import learn
from fsa2lrnn.nn import LRNN, LRNNConfig
from fsa2lrnn.nn.layer_checks import check_layer
from fsa2lrnn.nn.layers import LAYERS, Columns, Shape, layer_named, name_of
from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.hard import HardDeltaProductConfig, HardPDSSMConfig, HardSliceConfig, permutation
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.switched import switched, table_error
from fsa2lrnn.training.settings import preset

from . import published

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
    ("mamba3", {"reads": "state", "rope": 0.5, "expand_v": 1.0}),
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


@pytest.mark.long_cases("pd_ssm", "slice_block", "slice_hadamard")
@pytest.mark.parametrize("path", published.files(), ids=lambda path: path.stem)
def test_equal_to_the_published_code(path):
    assert max(published.errors(path).values()) < 1e-6


def test_numbers_of_each_layer_are_compared():
    compared = {published.about(path)["layer"] for path in published.files()}
    assert compared == {name for name, _ in GATED + STATES}


@pytest.mark.long_cases("pd_ssm-options10")
@pytest.mark.parametrize(("name", "options"), GATED + STATES)
def test_all_ways_agree(sequences, name, options):
    sequences(config(name, options), lengths=(1, 39))


@pytest.mark.parametrize(("name", "options"), GATED[::3] + STATES[::4])
def test_gradients_of_rows_by_index(on_letters, name, options):
    if config(name, options).width == 8:
        on_letters(config(name, options), words=4)


@pytest.mark.long_cases("pd_ssm-options2")
@pytest.mark.parametrize(("name", "options"), [GATED[0], GATED[8], GATED[10], GATED[11]])
def test_models_of_two_layers(model_of, name, options):
    model_of(config(name, options), connection="full-residual", layer_norm=True)


@pytest.mark.long_cases("pd_ssm-options8")
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


def test_sums_without_the_matrix_are_products_with_it():
    """For more words than letters sparse SLiCE sums A(u) y: states and gradients, and a step within the bounds."""
    model = model_with("slice", {"form": "sparse", "density": 0.5}, torch.float64)
    layer, state = model.recurrences[0], model.recurrences[0].initial_state(6)
    u = torch.randn(6, 4, 8, dtype=torch.float64, requires_grad=True)
    found, expected = (layer(u, state, method)[0] for method in ("auto", "sequential"))
    torch.testing.assert_close(found, expected)
    inputs = [u, *layer.parameters()]
    torch.testing.assert_close(*(torch.autograd.grad(x.sin().sum(), inputs) for x in (found, expected)))
    single = model.float()
    rows, (errors, _) = single.first_inputs().detach(), table_error(single)
    y = torch.randn(3, 8)
    state = torch.cat([y, torch.zeros(3, 1)], -1).unsqueeze(1)
    found = single.recurrences[0]._summed(rows.unsqueeze(1), y, torch.zeros(3, 8))[:, 0].double()
    after = (switched(single).A.double() @ state.double().unsqueeze(-1)).flatten(1)
    off = (errors.double() @ state.double().abs().unsqueeze(-1)).flatten(1)
    assert ((found - after[:, :8]).abs() <= off[:, :8]).all()
    assert (found != after[:, :8]).any()


MAMBA3 = sys.modules[layer_named("mamba3").__module__]
FUNCTIONS = {
    torch.tanh: lambda x: x.tanh(),
    torch.sin: lambda x: x.sin(),
    torch.cos: lambda x: x.cos(),
    torch.nn.functional.logsigmoid: lambda x: -(1 + (-x).exp()).log(),
    MAMBA3._rate: lambda x: 1 + x if x > 0 else 1 / (1 - x),  # 1e-4 is out of this range
}
BOUNDS = {MAMBA3._rate: MAMBA3._rounded_rate}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bounds_of_functions_hold_in_300_bits(dtype):
    x = torch.linspace(-30, 30, 600).to(dtype)
    numbers, rows = RoundedNumbers.exact(x), RoundedNumbers.exact(x.view(100, 6))
    blurred = RoundedNumbers(numbers.mid, torch.full_like(numbers.mid, 1e-3), numbers.kind)
    with flint.ctx.workprec(300):
        arbs = [flint.arb(value) for value in x.tolist()]
        for function, exact in FUNCTIONS.items():
            for bound, shift in ((numbers, 0), (blurred, 1e-3), (blurred, -1e-3)):
                bound = BOUNDS.get(function, partial(rounding.tame, function))(bound)
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


@pytest.mark.long_cases("mamba2", "mamba3", "slice")
@pytest.mark.parametrize(
    "name",
    ["mamba2", "mamba3", "slice", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rwkv7", "pd_ssm"))],
)
def test_trained_models_are_certified_searched_and_repaired(name, tmp_path):
    options = {"slice": {}}.get(name, {**STATE, "expand_v": 1.0} if name.startswith("mamba") else {"reads": "state"})
    task = "regex:(a|b)*a"
    source = MooreMachine.from_source(task)
    settings = preset(
        "quick", task, layer=name, options=options, steps=300 if name == "mamba2" else 600, heads=2, block=4,
        connection="chain", normalisation="none", layer_norm=False, stop_at=None, schedule="cosine", seed=1,
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


@torch.no_grad()
def test_the_state_of_mamba_3_is_read_by_queries_as_in_the_published_layer():
    options = {"rope": 0.5, "expand_v": 1.5}
    gated, plain = (
        layer_named("mamba3").build(5, config("mamba3", {**options, **reads}), Columns("none", 2.0)).double()
        for reads in ({}, {"reads": "state"})
    )
    z, x, B, C, *gates = gated.in_proj.weight.split(gated.sizes)
    for name, weight in plain.named_parameters():
        if name not in ("in_proj.weight", "x0"):
            weight.copy_(0.1 * torch.randn_like(weight) + weight)
            gated.get_parameter(name).copy_(weight)
    plain.in_proj.weight.copy_(torch.cat([x, B, *gates]))
    u = torch.randn(3, 9, 5, dtype=torch.float64)
    states, _ = plain(u, plain.initial_state(3))
    s = states.view(3, 9, 2, 6, 8)[..., :4]
    gate = u @ z.T
    o = (s @ gated._key(u @ C.T, "C").unsqueeze(-1)).squeeze(-1) + gated.D[:, None] * (u @ x.T).view(3, 9, 2, 6)
    expected, _ = gated(u, gated.initial_state(3))
    assert torch.allclose(gated.out_proj(o.flatten(-2) * gate * gate.sigmoid()), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", [name for name, _ in STATES if name not in ("slice", "mingru", "pd_ssm")])
def test_published_layers_declare_no_tables(name):
    layer = layer_named(name).build(8, config(name, {}), Columns("none", 2.0))
    assert not layer.has_tables
    with pytest.raises(UnsupportedFormat, match="has no tables"):
        layer.tables(torch.zeros(3, 8))


@pytest.mark.parametrize(("name", "options", "message"), [
    ("gated_deltanet", {"reads": "state"}, "conv = 4: a number of letters, 0 with"),
    ("gated_deltanet", {"reads": "keys"}, "reads = 'keys': one of gated, state"),
    ("kda", {"expand_v": 0.3}, "4 keys take a whole number of values"),
    ("deltaproduct", {"factors": 0}, "a product has 1 factor or more"),
    ("mamba3", {"conv": 4}, "Mamba-3 has no convolution"),
    ("rwkv7", {"conv": 4}, "RWKV-7 has 0 and 1"),
    ("rwkv7", {"rank": 0}, "needs a positive whole number"),
    ("pd_ssm", {"dictionary": 0}, "PDSSMConfig needs a positive whole number"),
    ("slice", {"form": "full"}, "one of block, sparse, hadamard, diagonal"),
    ("slice", {"density": 0}, "out of range"),
])  # fmt: skip
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


@pytest.mark.parametrize("config", [HardSliceConfig(1, hidden=5), HardDeltaProductConfig(1, hidden=5, writes=False)])
@pytest.mark.parametrize("near", [-2e-6, 2e-6])
def test_an_entry_that_rounds_is_near_one_that_is_exact_from_either_side(config, near):
    layer, W2 = layer_of(config), torch.zeros(4, 5)  # entry 0 is exactly 0
    W2[1:3, 0] = torch.tensor([-1.0, -2.0])
    W2[3] = torch.tensor([100 / 3, 100 / 7, -100 / 3, -100 / 7, near])  # sums to `near`
    for apart in (0, 1e3 * near):
        W2[3, 4] += apart
        layer.transition.set({"W1": torch.ones(5, 5), "W2": W2})
        assert layer.is_exact(torch.eye(5), 2.0**24) == bool(apart)


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


@pytest.mark.long_cases("hard_pd_ssm")
@pytest.mark.parametrize("layer", ["hard_pd_ssm", "hard_slice"])
def test_learned_networks_are_proved(layer):
    learned = learn("task:group(S3)", layer=layer, block=3, steps=3_000)
    assert learned.is_proved
    source = MooreMachine.from_source("task:group(S3)")
    assert isinstance(prove_equivalent(learned.network, source), Proved)
    with torch.no_grad():  # a mutant: another permutation for one letter in every head
        learned.network.layers[0].transition.table[:, 0] *= -1
    assert isinstance(prove_equivalent(learned.network, source), Refuted)
