"""Compiled loops over words as differentiable functions."""

import pytest
import torch
from numba import njit

from fsa2lrnn.extra.baselines.kernels.harness import CompiledRecurrence


@njit
def _forward(factor, u, y, twice, first, last):
    for n in range(first, last):
        for i in range(u.shape[1]):
            y[n, i] = factor[i] * u[n, i]
            twice[n, i] = 2 * u[n, i]


@njit
def _backward(factor, u, _y, twice, dy, dfactor, du, first, last):
    for n in range(first, last):
        for i in range(u.shape[1]):
            dfactor[i] += dy[n, i] * twice[n, i] / 2
            du[n, i] = factor[i] * dy[n, i]


SCALED = CompiledRecurrence(
    name="scaling",
    arguments=("factor", "u"),
    n_shared=1,
    shapes=lambda _, u: [u.shape, u.shape],
    n_returned=1,
    cost=1,
    instead="sequential",
    forward=_forward,
    backward=_backward,
)


def drawn(batch, width=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = ((width,), (batch, width))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def results(factor, u):
    (y,) = SCALED(factor, u)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(y.dtype)
    return [y, *torch.autograd.grad(y, (factor, u), dy)]


@pytest.mark.parametrize("batch", [0, 1, 2, 9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_and_gradients_are_those_of_the_loops(batch, dtype):
    factor, u = drawn(batch, dtype=dtype)
    y, of_factor, of_u = results(factor, u)
    dy = of_u / factor
    assert y.dtype == of_factor.dtype == dtype
    torch.testing.assert_close(y, factor * u)
    torch.testing.assert_close(of_factor, (dy * u).sum(0), rtol=1e-4, atol=1e-5)


def test_threads_change_no_bit(same_by_any_threads):
    given = drawn(37)
    same_by_any_threads(lambda: results(*given))
