"""The Householder layer against its formula, and as a layer that trains."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn import LRNN, HouseholderLayerConfig, LRNNConfig, load, save
from fsa2lrnn.lrnn.layers.householder import HouseholderLayer
from fsa2lrnn.lrnn.scans import METHODS


def test_the_transition_is_the_product_of_its_factors_first_factor_first():
    torch.manual_seed(0)
    layer = HouseholderLayer(5, HouseholderLayerConfig(4, 3, 6, 6, n_heads=2)).double()
    u = torch.randn(2, 7, 5, dtype=torch.float64)
    A, v = layer.tables(u)
    keys, rates = layer.transition(u).reshape(2, 7, 2, 3, 4), layer.rate(u).reshape(2, 7, 2, 3)
    expected = torch.eye(4, dtype=torch.float64)
    for j in range(3):
        k = keys[..., j, :]
        factor = torch.eye(4, dtype=torch.float64) - rates[..., j, None, None] * k.unsqueeze(-1) * k.unsqueeze(-2)
        expected = factor @ expected
    torch.testing.assert_close(A, expected)
    assert torch.equal(v.flatten(-2), layer.value(u))


def test_unit_keys_reflect_or_shrink_along_one_direction_and_never_lengthen():
    torch.manual_seed(0)
    layer = HouseholderLayer(5, HouseholderLayerConfig(4, 1, 6, 6, n_heads=2, unit_keys=True)).double()
    u = 30 * torch.randn(50, 5, dtype=torch.float64)
    eigenvalues = torch.linalg.eigvalsh(layer.tables(u)[0])  # ascending
    torch.testing.assert_close(eigenvalues[..., 1:], torch.ones(50, 2, 3, dtype=torch.float64))
    torch.testing.assert_close(eigenvalues[..., 0], 1 - 2 * layer.rate(u).sigmoid())
    assert eigenvalues[..., 0].min() < -0.5
    several = HouseholderLayer(5, HouseholderLayerConfig(4, 3, 6, 6, unit_keys=True)).double()
    assert torch.linalg.matrix_norm(several.tables(u)[0], ord=2).max() <= 1 + 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_it_trains_and_saves_like_any_layer(tmp_path, method):
    torch.manual_seed(0)
    layers = HouseholderLayerConfig(3, 2, 4, 4), HouseholderLayerConfig(2, 1, 4, 4, n_heads=2, unit_keys=True)
    config = LRNNConfig("ab", (0, 1), layers, embedding_dim=4, readout_hidden=4)
    model = LRNN(config)
    tokens = torch.tensor([[0, 1, 1, 0, 1]])
    model(tokens, method).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert model.layers[0].rate[2].weight.grad.any()
    save(model, tmp_path / "h.safetensors")
    assert torch.equal(load(tmp_path / "h.safetensors")(tokens), model(tokens))


@pytest.mark.parametrize("change", [{"size": 0}, {"n_factors": 0}, {"value_hidden": 0}, {"n_heads": 0}])
def test_sizes_are_positive(change):
    with pytest.raises(UnsupportedFormat, match=f"{next(iter(change))} = 0: a Householder layer needs a positive one"):
        HouseholderLayerConfig(**{"size": 2, "n_factors": 1, "transition_hidden": 2, "value_hidden": 2, **change})
