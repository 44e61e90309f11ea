"""The trainable layers: tables, padding, states, and the Householder layer against its formula."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn import BlockLayerConfig, HouseholderLayerConfig
from fsa2lrnn.lrnn.layers.block import BlockLayer
from fsa2lrnn.lrnn.layers.householder import HouseholderLayer


def layer(sizes, rule="clip"):
    torch.manual_seed(0)
    return BlockLayer(5, BlockLayerConfig(sizes, 7, 6), rule, 1.2).double()


@pytest.mark.parametrize("rule", ["clip", "none", "released"])
def test_tables_are_the_gates_reshaped_and_normalised(rule):
    block, u = layer((3, 3), rule), torch.randn(4, 2, 5, dtype=torch.float64)
    A, v = block.tables(u)
    assert A.shape == (4, 2, 2, 3, 3)
    assert torch.equal(v, block.value(u).reshape(4, 2, 2, 3))
    raw = block.transition(u).reshape(4, 2, 2, 3, 3)
    assert torch.equal(A, raw) == (rule == "none")
    if rule == "clip":
        norms = torch.linalg.vector_norm(raw, ord=1.2, dim=-2, keepdim=True)
        torch.testing.assert_close(A * norms.clamp(min=1), raw)


def test_padding_neither_computes_nor_learns_nor_counts_in_the_column_norm():
    block = layer((3, 1, 2))
    assert (block.block_sizes, block.n_heads) == ((3, 1, 2), 3)
    u = torch.randn(2, 5, 5, dtype=torch.float64)
    A, v = block.tables(u)
    outside = ~(block.mask[:, :, None] & block.mask[:, None, :])
    assert not A[..., outside].any()
    assert not v[..., ~block.mask].any()
    x, _ = block(u, block.initial_state(2))
    assert not x.unflatten(-1, (3, 3))[..., ~block.mask].any()
    x.square().sum().backward()
    assert not block.x0.grad[~block.mask].any()
    assert block.x0.grad[block.mask].all()
    assert not block.transition[2].bias.grad.reshape(3, 3, 3)[outside].any()
    block = layer((3, 1))
    with torch.no_grad():
        block.transition[2].bias[9:] = 5
    A, _ = block.tables(torch.zeros(5, dtype=torch.float64))
    assert A[1, 0, 0] == 1


def test_the_state_is_the_last_output_and_torch_scans_can_be_differentiated_twice():
    block, u = layer((2, 2)), torch.randn(3, 4, 5, dtype=torch.float64)
    start = block.initial_state(3)
    assert torch.equal(start, block.x0.expand(3, 2, 2))
    x, last = block(u, start)
    assert torch.equal(block.emit(last), x[:, -1])
    _, unmoved = block(u[:, :0], start)
    assert torch.equal(unmoved, start)
    block, u = layer((8,) * 8), torch.randn(1, 40, 5, dtype=torch.float64)
    x = block(u, block.initial_state(1), "sequential")[0]
    (gradient,) = torch.autograd.grad(x.square().sum(), block.x0, create_graph=True)
    gradient.square().sum().backward()
    assert block.transition[2].weight.grad.isfinite().all()


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


@pytest.mark.parametrize("change", [{"size": 0}, {"n_factors": 0}, {"value_hidden": 0}, {"n_heads": 0}])
def test_sizes_are_positive(change):
    with pytest.raises(UnsupportedFormat, match=f"{next(iter(change))} = 0: a Householder layer needs a positive one"):
        HouseholderLayerConfig(**{"size": 2, "n_factors": 1, "transition_hidden": 2, "value_hidden": 2, **change})
