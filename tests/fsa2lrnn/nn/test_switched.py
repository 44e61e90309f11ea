"""A model of one layer over letters as its tables: what they compute, and what identifies them."""

from dataclasses import fields, replace

import pytest
import torch

from fsa2lrnn import compile_machine, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, HouseholderLayerConfig, LRNNConfig, Readout, SwitchedAffine
from fsa2lrnn.nn.layers import BlockLayer, Layer
from fsa2lrnn.nn.switched import as_tables, switched, table_error


def learned(**changes):
    torch.manual_seed(0)
    layers = (BlockLayerConfig((3, 3), 7, 5),) * changes.pop("n_layers", 1)
    changes = {"embedding_dim": 6, "readout_hidden": 5, "normalisation": "paper", **changes}
    return LRNN(LRNNConfig(("a", "b", "c"), (False, True), layers, **changes))


@pytest.mark.parametrize("layer_norm", [True, False, "readout"])
@pytest.mark.parametrize("normalisation", ["paper", "clip", "none"])
@pytest.mark.parametrize("connection", ["chain", "residual", "concat"])
def test_the_tables_compute_what_the_model_computes(layer_norm, normalisation, connection):
    model = learned(layer_norm=layer_norm, normalisation=normalisation, connection=connection)
    tables = switched(model)
    assert (tables.alphabet, tables.outputs, tables.dtype) == (("a", "b", "c"), (False, True), torch.float32)
    assert not any(tensor.requires_grad for tensor in (tables.A, tables.v, tables.x0, tables.readout.W1))
    tokens = torch.randint(3, (4, 50))
    with torch.no_grad():
        logits, state = model.advance(tokens, model.initial_state(4))
        x = tables.run(tokens)
    assert torch.equal(state[0].x, x[:, -1])
    torch.testing.assert_close(tables.logits(x), logits)


def test_padded_blocks_and_compiled_models_which_have_no_error():
    model = compile_machine(zoo.sum_mod(5), layout="dense")
    tables = switched(model)
    words = torch.randint(5, (3, 20))
    assert tables.logits(tables.run(words)).argmax(-1).tolist() == (words.cumsum(1) % 5).tolist()
    for model in (as_tables(learned()), compile_machine(zoo.sum_mod(5)), compile_machine(zoo.sum_mod(5), p=2.0)):
        assert not any(error.any() for error in table_error(model))


@pytest.mark.parametrize(("model", "message"), [
    (lambda: learned(n_layers=2, connection="residual"), "the model has 2 layers: only one layer with tables"),
    (lambda: learned(token_shift=True), "the model has 1 layers and a token shift: only"),
    (lambda: learned(connection="full-residual"), "1 layers and a residual stream up to the read-out: only"),
    (lambda: compile_machine(zoo.sum_mod(5), layout="index"), "the model has a layer of kind index: only"),
])  # fmt: skip
def test_other_models_are_refused(model, message):
    assert not model().is_switched
    with pytest.raises(UnsupportedFormat, match=message):
        switched(model())


def evaluations(model):
    """A and v of every letter as other shapes of call make them, by either method of the column rule."""
    u, layer = model.first_inputs(), model.recurrences[0]
    n = len(u)
    for rows in (u[:, None], u.repeat(50, 1), u.repeat(333, 1)[None], u.repeat(7, 1)[:, None]):
        for method in ("reference", "fused"):
            A, v = layer.tables(rows, method)
            yield tuple(x.reshape(-1, n, *x.shape[rows.ndim - 1 :]).unbind(0) for x in (A, v))
    for method in ("reference", "fused"):
        alone = [layer.tables(u[i : i + 1], method) for i in range(n)]
        yield tuple([torch.cat(x)] for x in zip(*alone, strict=True))


def householder(unit_keys):
    torch.manual_seed(0)
    layers = (HouseholderLayerConfig(8, 2, 64, 32, 4, unit_keys),)
    return LRNN(LRNNConfig(("a", "b", "c"), (0, 1), layers, 32, 8))


MODELS = {
    **{rule: lambda rule=rule: learned(normalisation=rule, layer_norm=True) for rule in ("paper", "clip", "none")},
    "products": lambda: householder(False),
    "unit keys": lambda: householder(True),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MODELS)
def test_tables_of_any_evaluation_lie_within_the_error(name, dtype):
    model = MODELS[name]().to(dtype)
    tables, (error_A, error_v) = switched(model), table_error(model)
    assert 0 < error_A.max() < 1e4 * torch.finfo(dtype).eps
    assert 0 < error_v.max() < 1e4 * torch.finfo(dtype).eps
    with torch.no_grad():
        for As, vs in evaluations(model):
            assert all(((A - tables.A).abs().double() <= error_A).all() for A in As)
            assert all(((v - tables.v).abs().double() <= error_v).all() for v in vs)


class Mute(BlockLayer):
    """A layer that says nothing of its rounding."""

    rounded_tables = Layer.rounded_tables
    is_lookup = Layer.is_lookup


def test_layers_that_bound_nothing_and_tables_that_the_bounds_are_not_about():
    model = learned()
    model.layers[0].__class__ = Mute
    with pytest.raises(UnsupportedFormat, match=r"Mute declares no bound .* LRNN\.from_affine\(switched\(model\)\)"):
        table_error(model)
    model = learned(normalisation="none")
    model.layers[0].mask[0, 0] = False
    A = switched(model).A.double()
    assert (table_error(model)[0][:, 0, 0] >= A[:, 0, 0].abs()).all()


def system(dtype=torch.float64, norm=True):
    """Two letters, two heads of size 3, four outputs, at random."""
    torch.manual_seed(0)
    shapes = [(5, 6), (5,), (4, 5), (4,)] + ([(6,), (6,)] if norm else [])
    readout = Readout(*(torch.randn(shape).to(dtype) for shape in shapes))
    A, v, x0 = (torch.randn(shape).to(dtype) for shape in [(2, 2, 3, 3), (2, 2, 3), (2, 3)])
    return SwitchedAffine.of(A, v, x0, readout)


def test_a_step_is_what_a_run_is_made_of():
    tables = system()
    x = tables.x0[None]
    for k in range(4):
        x = tables.step(x).flatten(0, 1)  # words in alphabetical order
        tokens = torch.tensor([[int(bit) for bit in f"{i:0{k + 1}b}"] for i in range(2 ** (k + 1))])
        torch.testing.assert_close(x, tables.run(tokens)[:, -1])
    by_hand = tables.x0
    for a in (1, 0):
        by_hand = torch.stack([tables.A[a, h] @ by_hand[h] + tables.v[a, h] for h in range(2)])
    torch.testing.assert_close(tables.run(torch.tensor([[1, 0]]))[0, -1], by_hand)


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_any_changed_number_changes_the_digest(norm, dtype):
    tables = system(dtype, norm)
    digest = tables.sha256
    assert digest == system(dtype, norm).sha256
    own = [(tables, name) for name in ("A", "v", "x0")]
    read = [
        (tables.readout, field.name) for field in fields(Readout) if getattr(tables.readout, field.name) is not None
    ]
    for holder, name in own + read:
        numbers = getattr(holder, name).view(-1)
        for i in range(len(numbers)):
            before = numbers[i].clone()
            numbers[i] = torch.nextafter(before, before + 1)
            assert tables.sha256 != digest, f"{name}, number {i}"
            numbers[i] = before
    assert tables.sha256 == digest


def test_the_digest_tells_dtypes_and_shapes_apart_and_all_numbers_have_the_dtype():
    tables = system()
    assert tables.to(torch.float32).sha256 != tables.sha256  # all its numbers are float32's
    assert (
        replace(tables, x0=torch.zeros(2, 3).double()).sha256 == replace(tables, x0=-torch.zeros(2, 3).double()).sha256
    )
    swapped = replace(tables, A=tables.A.transpose(-1, -2))
    assert swapped.sha256 != tables.sha256
    assert swapped.sha256 == replace(swapped, A=swapped.A.contiguous()).sha256
    halved = system().to(torch.bfloat16)
    assert halved.dtype == halved.readout.norm_bias.dtype == torch.bfloat16
    assert halved.logits(halved.run(torch.tensor([[0, 1]]))).dtype == torch.bfloat16
    assert system(norm=False).to(torch.float32).readout.norm_weight is None


def test_readouts_are_those_of_the_model_or_linear():
    torch.manual_seed(1)
    readout = system().readout
    x = torch.randn(7, 6).double()
    y = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    y = y * readout.norm_weight + readout.norm_bias
    wanted = (y @ readout.W1.T + readout.b1).clamp(min=0) @ readout.W2.T + readout.b2
    torch.testing.assert_close(readout(x), wanted)
    torch.manual_seed(2)
    W, b, x = (torch.randint(-50, 50, shape).double() for shape in [(3, 4), (3,), (20, 4)])
    assert torch.equal(Readout.linear(W, b)(x), x @ W.T + b)
    W, b, x = torch.randn(3, 4), torch.randn(3), torch.randn(500, 4)
    torch.testing.assert_close(Readout.linear(W, b)(x), x @ W.T + b, rtol=1e-5, atol=1e-6)


def test_shapes_that_do_not_fit_are_named():
    good = system()
    parts = {"A": good.A, "v": good.v, "x0": good.x0, "readout": good.readout}
    wrong = [
        ({"A": good.A[:, :1]}, r"A has shape \(2, 1, 3, 3\), but 2 letters and x0 \(2, 3\) ask for \(2, 2, 3, 3\)"),
        ({"v": good.v[:1]}, r"v has shape \(1, 2, 3\), but"),
        ({"x0": good.x0[None]}, r"x0 has shape \(1, 2, 3\), but a state is \(H, b\)"),
        ({"x0": good.x0.float()}, "several dtypes"),
        ({"readout": Readout.linear(torch.eye(2).double(), torch.zeros(2).double())}, "takes 2 numbers, a state has 6"),
        ({"outputs": (0, 1)}, "the read-out gives 4 logits for 2 outputs"),
    ]
    for change, message in wrong:
        with pytest.raises(UnsupportedFormat, match=message):
            SwitchedAffine.of(**{**parts, **change})
    read = good.readout
    for change, message in [
        ({"b1": read.b1[:2]}, r"b1 has shape \(2,\), W1 \(5, 6\) asks for \(5,\)"),
        ({"W2": read.W2.T}, "W2 has shape"),
        ({"norm_bias": None}, "give norm_weight and norm_bias, or neither"),
        ({"W1": read.b1}, r"W1 and b2 have shapes \(5,\) and \(4,\)"),
    ]:
        with pytest.raises(UnsupportedFormat, match=message):
            replace(read, **change)
