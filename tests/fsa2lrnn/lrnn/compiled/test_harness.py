"""Compiled loops as differentiable functions: what is shared by words is added up, what they do not take is refused."""

import pytest
import torch
from numba import njit

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.compiled.harness import CompiledRecurrence


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


def test_arguments_need_not_be_contiguous():
    factor, u = (x.detach()[..., ::2].requires_grad_() for x in drawn(4, 6))
    assert torch.autograd.gradcheck(lambda *given: SCALED(*given)[0], (factor, u))


def test_threads_change_no_bit(same_by_any_threads):
    given = drawn(37)
    same_by_any_threads(lambda: results(*given))


def test_a_second_derivative_is_refused():
    factor, u = drawn(2)
    (du,) = torch.autograd.grad(SCALED(factor, u)[0].square().sum(), u, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        du.sum().backward()


def test_what_compiled_loops_do_not_take_is_refused():
    factor, u = drawn(2)
    wording = 'factor float32 on cpu, u float64 on cpu: the compiled scaling takes .*choose method="sequential"'
    with pytest.raises(UnsupportedFormat, match=wording):
        SCALED(factor.float(), u)
