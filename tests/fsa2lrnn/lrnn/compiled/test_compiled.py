"""Compiled loops as differentiable functions, the memory of their tensors, and the threads that share them out."""

import os
import signal
import warnings

import numpy as np
import pytest
import torch
from numba import njit
from torch.autograd import Function

from fsa2lrnn.lrnn import compiled
from fsa2lrnn.lrnn.compiled import typed_once_differentiable
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


def test_threads_change_no_bit(same_by_any_threads):
    given = drawn(37)
    same_by_any_threads(lambda: results(*given))


class Product(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    @typed_once_differentiable
    def backward(ctx, dz):
        x, y = ctx.saved_tensors
        return y * dz, x * dz if ctx.needs_input_grad[1] else None


def test_gradients_are_those_of_the_method_and_none_may_be_missing():
    x, y = torch.tensor(3.0, requires_grad=True), torch.tensor(5.0)
    assert torch.autograd.grad(Product.apply(x, y), x)[0].item() == 5
    y.requires_grad_()
    assert [gradient.item() for gradient in torch.autograd.grad(Product.apply(x, y), (x, y))] == [5, 3]


def test_a_second_derivative_is_refused_not_wrong():
    x = torch.tensor(3.0, requires_grad=True)
    (slope,) = torch.autograd.grad(Product.apply(x, x).square(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.backward()


LENGTH = compiled.LARGE // 4


@pytest.fixture
def no_blocks(monkeypatch):
    monkeypatch.setattr(compiled, "_blocks", [])


@pytest.mark.parametrize("length", [1, LENGTH, 3 * LENGTH + 5])
def test_a_tensor_is_aligned_and_writable(length):
    tensor = compiled.empty((length, 2), torch.float64)
    assert (tensor.shape, tensor.dtype, tensor.is_contiguous()) == ((length, 2), torch.float64, True)
    assert tensor.data_ptr() % 64 == 0
    tensor.fill_(3)
    assert (tensor == 3).all()


@pytest.mark.usefixtures("no_blocks")
def test_what_is_held_in_any_way_is_not_used_again():
    held = [compiled.empty((LENGTH,), torch.float32) for _ in range(3)]
    held[1] = held[1][5:7]  # a view
    held[2] = held[2].detach().reshape(2, -1).T
    for i, tensor in enumerate(held):
        tensor.fill_(i)
    others = [compiled.empty((LENGTH,), torch.float32).fill_(9) for _ in range(3)]
    assert len({tensor.untyped_storage().data_ptr() for tensor in held + others}) == 6
    assert all((tensor == i).all() for i, tensor in enumerate(held))


@pytest.mark.usefixtures("no_blocks")
def test_what_is_free_is_used_again_for_something_of_like_size():
    tensor = compiled.empty((LENGTH,), torch.float32)
    place = tensor.data_ptr()
    del tensor
    assert compiled.empty((4 * LENGTH,), torch.float32).data_ptr() != place
    assert compiled.empty((LENGTH // 2,), torch.float64).data_ptr() == place


@pytest.mark.usefixtures("no_blocks")
def test_no_more_is_held_than_the_limits(monkeypatch):
    monkeypatch.setattr(compiled, "KEPT", 5 * compiled.LARGE // 2)
    tensors = [compiled.empty((LENGTH,), torch.float32) for _ in range(4)]
    assert len(compiled._blocks) == 2
    large = compiled.empty((3 * LENGTH,), torch.float32)
    assert len(compiled._blocks) == 2
    for i, tensor in enumerate([*tensors, large]):
        tensor.fill_(i)
    assert all((tensor == i).all() for i, tensor in enumerate([*tensors, large]))
    compiled._blocks.clear()
    monkeypatch.undo()
    monkeypatch.setattr(compiled, "_blocks", [])
    monkeypatch.setattr(compiled, "MOST", 3)
    tensors = [compiled.empty((LENGTH,), torch.float32) for _ in range(5)]
    assert len(compiled._blocks) == 3
    assert len({tensor.data_ptr() for tensor in tensors}) == 5


def test_cuts_cover_everything_once():
    for total in range(12):
        for n_parts in range(1, 6):
            cuts = compiled.cuts(total, n_parts)
            assert np.concatenate([np.arange(*cut) for cut in cuts]).tolist() == list(range(total))
            assert len(cuts) == max(1, min(total, n_parts))


@pytest.mark.parametrize(("multiplications", "wanted"), [(0, 1), (1, 1), (20, 2), (29, 2), (30, 3), (99, 3)])
def test_threads_are_as_many_as_torchs_and_as_the_work_is_worth(monkeypatch, multiplications, wanted):
    monkeypatch.setattr(compiled, "WORTH_A_THREAD", 10)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert compiled.thread_count(multiplications) == wanted


@pytest.mark.parametrize("n_parts", [1, 3])
def test_a_kernel_gets_flat_arrays_that_are_the_tensors_memory(n_parts):
    tensor = torch.zeros(3, 4, requires_grad=True)

    def kernel(flat, step, part):
        flat[part[0] : part[1]] += step

    compiled.share(kernel, (tensor, 5), compiled.cuts(12, n_parts))
    assert tensor.tolist() == [[5.0] * 4] * 3


@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_a_job_raises_is_raised(n_threads):
    def fail():
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError, match="no"):
        compiled.at_once([list, fail, list], n_threads)


def test_a_forked_child_has_threads_of_its_own():
    done = []
    compiled.at_once([lambda: done.append(1)] * 3, 2)
    assert done == [1] * 3
    assert compiled._pool.cache_info().currsize
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads, which are the point here
        child = os.fork()
    if not child:
        signal.alarm(20)  # where nobody does the work, waiting for it would never end
        compiled.at_once([lambda: done.append(2)] * 3, 2)
        os._exit(0 if done == [1, 1, 1, 2, 2, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0
