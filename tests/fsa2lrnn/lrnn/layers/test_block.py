"""The trainable layer: its tables, its padding, its state."""

import pytest
import torch

from fsa2lrnn.lrnn import BlockLayerConfig
from fsa2lrnn.lrnn.layers.block import BlockLayer
from fsa2lrnn.lrnn.normalise import normalise
from fsa2lrnn.lrnn.scans import scan, scan_tokens

PLACE = "fsa2lrnn.lrnn.layers.block"


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


def test_unequal_blocks_are_padded_and_their_padding_neither_computes_nor_learns():
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


def test_padding_does_not_count_in_the_column_norm():
    """A block of size 1 beside one of size 3 is clipped by its own single entry."""
    block = layer((3, 1))
    with torch.no_grad():
        block.transition[2].bias[9:] = 5
    A, _ = block.tables(torch.zeros(5, dtype=torch.float64))
    assert A[1, 0, 0] == 1


@pytest.mark.parametrize("rule", ["clip", "released"])
@pytest.mark.parametrize("method", ["fused", "sequential"])
def test_the_scan_by_name_decides_who_computes_the_column_rule(monkeypatch, method, rule):
    block, u, asked = layer((8,) * 8, rule), torch.randn(2, 40, 5, dtype=torch.float64), []

    def watch(A, rule, p, method, temperature):
        asked.append(method)
        return normalise(A, rule, p, method, temperature)

    monkeypatch.setattr("fsa2lrnn.lrnn.layers.block.normalise", watch)
    found = block(u, block.initial_state(2), method)[0]
    torch.testing.assert_close(found, block(u, block.initial_state(2))[0], rtol=1e-11, atol=1e-11)
    assert asked == [{"fused": "auto", "sequential": "reference"}[method], "auto"]


def test_letters_are_scanned_as_letters_by_index_and_sequentially_without(monkeypatch):
    block, u, asked = layer((2, 3)), torch.randn(4, 5, dtype=torch.float64), []
    for name, run in (("scan", scan), ("scan_tokens", scan_tokens)):
        monkeypatch.setattr(
            f"fsa2lrnn.lrnn.layers.block.{name}", lambda *given, f=run: asked.append(given[-1]) or f(*given)
        )
    monkeypatch.setattr(
        "fsa2lrnn.lrnn.layers.block.normalise", lambda *given: asked.append(given[3]) or normalise(*given)
    )
    index, state = torch.randint(4, (2, 9), generator=torch.Generator().manual_seed(0)), block.initial_state(2)
    by_index, last = block(u, state, "letters", index)
    written_out, same = block(u[index], state, "letters")
    torch.testing.assert_close(by_index, written_out, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(last, same, rtol=1e-12, atol=1e-12)
    assert asked == ["reference", "letters", "reference", "sequential"]


def test_a_layer_that_is_scanned_in_torch_can_be_differentiated_twice():
    block, u = layer((8,) * 8), torch.randn(1, 40, 5, dtype=torch.float64)
    x = block(u, block.initial_state(1), "sequential")[0]
    (gradient,) = torch.autograd.grad(x.square().sum(), block.x0, create_graph=True)
    gradient.square().sum().backward()
    assert block.transition[2].weight.grad.isfinite().all()


def test_the_state_is_the_last_output():
    block, u = layer((2, 2)), torch.randn(3, 4, 5, dtype=torch.float64)
    start = block.initial_state(3)
    assert torch.equal(start, block.x0.expand(3, 2, 2))
    x, last = block(u, start)
    assert torch.equal(block.emit(last), x[:, -1])
    _, unmoved = block(u[:, :0], start)
    assert torch.equal(unmoved, start)
