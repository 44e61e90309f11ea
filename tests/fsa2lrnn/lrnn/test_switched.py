"""A model of one layer over letters as its tables."""

import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.switched import switched


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
        (lambda: compile_machine(zoo.sum_mod(5), layout="index"), "the model has a layer of kind index: only"),
    ],
)
def test_other_models_are_refused(model, message):
    assert not model().is_switched
    with pytest.raises(UnsupportedFormat, match=message):
        switched(model())
