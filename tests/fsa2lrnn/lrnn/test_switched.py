"""A model of one layer over letters as its tables."""

import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, HouseholderLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.layers import BlockLayer, Layer
from fsa2lrnn.lrnn.switched import as_tables, switched, table_error


def learned(**changes):
    torch.manual_seed(0)
    layers = (BlockLayerConfig((3, 3), 7, 5),) * changes.pop("n_layers", 1)
    changes = {"embedding_dim": 6, "readout_hidden": 5, "normalisation": "released", **changes}
    return LRNN(LRNNConfig(("a", "b", "c"), (False, True), layers, **changes))


@pytest.mark.parametrize("layer_norm", [True, False, "readout"])
@pytest.mark.parametrize("normalisation", ["released", "clip", "none"])
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


def test_padded_blocks_and_compiled_models():
    model = compile_machine(zoo.sum_mod(5), layout="dense")
    tables = switched(model)
    words = torch.randint(5, (3, 20))
    assert tables.logits(tables.run(words)).argmax(-1).tolist() == (words.cumsum(1) % 5).tolist()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: learned(n_layers=2, connection="residual"), "the model has 2 layers: only one layer with tables"),
        (lambda: learned(token_shift=True), "the model has 1 layers and a token shift: only"),
        (lambda: learned(connection="full-residual"), "1 layers and a residual stream up to the read-out: only"),
        (lambda: compile_machine(zoo.sum_mod(5), layout="index"), "the model has a layer of kind index: only"),
    ],
)
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
    **{rule: lambda rule=rule: learned(normalisation=rule, layer_norm=True) for rule in ("released", "clip", "none")},
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


def test_look_ups_and_compiled_models_have_no_error():
    for model in (as_tables(learned()), compile_machine(zoo.sum_mod(5)), compile_machine(zoo.sum_mod(5), p=2.0)):
        assert not any(error.any() for error in table_error(model))


class Mute(BlockLayer):
    """A layer that says nothing of its rounding."""

    rounded_tables = Layer.rounded_tables
    is_lookup = Layer.is_lookup


def test_a_layer_that_bounds_nothing_is_refused_with_the_remedy():
    model = learned()
    model.layers[0].__class__ = Mute
    with pytest.raises(UnsupportedFormat, match=r"Mute declares no bound .* LRNN\.from_affine\(switched\(model\)\)"):
        table_error(model)


def test_tables_that_the_bounds_are_not_about_are_far_from_them():
    """A mask that is not the blocks' own cuts entries out of the bounds, and none out of the tables."""
    model = learned(normalisation="none")
    model.layers[0].mask[0, 0] = False
    A = switched(model).A.double()
    assert (table_error(model)[0][:, 0, 0] >= A[:, 0, 0].abs()).all()
