"""What hard layers share: choices are the largest logit's, gradients a softmax's, and no scan or format rounds."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn import LRNN, HardLanesConfig, HardReflectionsConfig, LRNNConfig, load, save
from fsa2lrnn.lrnn.layers import Shape
from fsa2lrnn.lrnn.layers.base import exchanges_closed
from fsa2lrnn.lrnn.layers.hard import MAPS
from fsa2lrnn.lrnn.rounding import FloatFormat, RoundedNumbers

CONFIGS = [
    HardLanesConfig(5, "table"),
    HardReflectionsConfig(3, "table", size=4, factors=2),
    HardLanesConfig(3, gate="relu", hidden=6),
    HardReflectionsConfig(2, size=3, factors=3, gate="relu", hidden=6),
]


def model_of(config, seed=0):
    torch.manual_seed(seed)
    return LRNN(LRNNConfig(tuple("abc"), (0, 1), (config,), embedding_dim=3, readout_hidden=8))


@pytest.mark.parametrize("config", CONFIGS)
def test_no_scan_and_no_format_rounds(config):
    model, tokens = model_of(config), torch.randint(3, (4, 37), generator=torch.Generator().manual_seed(1))
    layer, u = model.layers[0], model.first_inputs()
    assert layer.starts_exact()
    assert layer.is_exact(u, 2**24)
    x, _ = layer(u[tokens], layer.initial_state(4), "sequential")
    assert set(x.unique().tolist()) <= {-1.0, 0.0, 1.0}
    with torch.no_grad():
        assert torch.equal(layer(u[tokens], layer.initial_state(4), "sequential")[0], x)
    assert torch.equal(layer.eval()(u[tokens], layer.initial_state(4), "sequential")[0], x)
    for method in model.methods:
        assert torch.equal(layer(u[tokens], layer.initial_state(4), method)[0], x), method
    A, v = layer.tables(u)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        again, _ = layer.to(dtype)(u.to(dtype)[tokens], layer.initial_state(4), "pscan")
        if config.gate == "table" and dtype == torch.float64:
            assert torch.equal(again.float(), x)
        assert layer.starts_exact()
        assert exchanges_closed(*layer.tables(u.to(dtype)))
    assert exchanges_closed(A, v)


@pytest.mark.parametrize("config", CONFIGS)
def test_it_trains_and_saves_like_any_layer(tmp_path, config):
    model, tokens = model_of(config), torch.tensor([[0, 1, 2, 0, 1]])
    model(tokens).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.layers.parameters())
    save(model, tmp_path / "h.safetensors")
    assert torch.equal(load(tmp_path / "h.safetensors")(tokens), model(tokens))


def test_a_choice_that_rounding_may_change_is_not_called_exact():
    model = model_of(HardLanesConfig(2, "table"))
    layer, u = model.layers[0], model.first_inputs()
    with torch.no_grad():
        layer.transition.table.fill_(1.0)  # all logits equal: of exact numbers the first is the largest
    assert layer.is_exact(u, 2**24)
    blurred = RoundedNumbers(u.double(), torch.full(u.shape, 1e-3).double(), FloatFormat.of(torch.float32))
    with torch.no_grad():
        layer.transition.table.view(2, len(MAPS), 3)[0, 1] = 2.0  # lane 0 now leads by far
        A, v = layer.rounded_tables(blurred)
    assert not A.off[:, 0].any()
    assert A.off[:, 1].all()
    assert v.off[:, 1].all()


def test_what_a_training_run_says_of_its_shape():
    shape = Shape(3, 4)
    assert HardLanesConfig.of_shape(shape, {}) == HardLanesConfig(3)
    assert HardReflectionsConfig.of_shape(shape, {"factors": 2}) == HardReflectionsConfig(3, size=4, factors=2)
    with pytest.raises(UnsupportedFormat, match="size: no such option of HardReflectionsConfig"):
        HardReflectionsConfig.of_shape(shape, {"size": 2})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"heads": 0}, "heads = 0: HardReflectionsConfig needs a positive whole number"),
        ({"factors": 1.5}, "factors = 1.5: HardReflectionsConfig needs"),
        ({"gate": "mlp"}, "gate 'mlp' is not known: one of relu, table"),
        ({"temperature": 0}, "temperature = 0: a softmax needs a finite one above 0"),
    ],
)
def test_what_does_not_fit_is_named(changes, fault):
    with pytest.raises(UnsupportedFormat, match=fault):
        HardReflectionsConfig(**{"heads": 2, **changes})
    with pytest.raises(UnsupportedFormat, match="embedding_dim = 5: a table gate reads 3 letters one-hot"):
        LRNN(LRNNConfig(tuple("abc"), (0, 1), (HardLanesConfig(2, "table"),), embedding_dim=5))
