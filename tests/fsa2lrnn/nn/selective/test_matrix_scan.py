"""The chunked scan of matrix states against its loop."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers.matrix_layer import RankOneSteps, matrix_scan, transition


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
