"""Compiled loops as differentiable functions, the memory of their tensors, threads, and operations on rows."""

import os
import signal
import warnings

import numpy as np
import pytest
import torch
from numba import njit

from fsa2lrnn.lrnn import compiled
from fsa2lrnn.lrnn.compiled import empty
from fsa2lrnn.lrnn.compiled.vectors import WIDEST, fence, instruction

LENGTH = compiled.LARGE // 4


@pytest.fixture
def no_blocks(monkeypatch):
    monkeypatch.setattr(compiled, "_blocks", [])


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


def _write_all(rows, block, i, out, k):
    """The rows' sums, twice the first row plus the last, the first entry n times, and all squares: n + 3 rows."""
    loaded = [rows.load(block, i, row) for row in range(rows.n)]
    rows.store(rows.sums(loaded), out, k)
    rows.store(rows.plus(rows.plus(loaded[0], loaded[0]), loaded[-1]), out, k, 1)
    rows.store(rows.repeat(loaded[0], 0), out, k, 2)
    for row, each in enumerate(loaded):
        rows.stream(rows.times(each, each), out, k, row + 3)


_all = instruction(_write_all)


def made(width):
    @njit
    def run(block, i, out, k):
        _all(width, (block, i, out, k))
        fence()

    return run


@pytest.mark.parametrize("width", [1, 3, 8, WIDEST])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_are_read_computed_and_written_where_they_belong(dtype, width):
    out = empty((width + 7, width), dtype).fill_(77).numpy()
    memory = np.random.default_rng(0).integers(-9, 9, 5 + width * width).astype(out.dtype)
    block = memory[5:].reshape(width, width)
    made(width)(memory, 5, out.reshape(-1), 2 * width)
    wanted = [block.sum(1), 2 * block[0] + block[-1], np.full(width, block[0, 0]), *block**2]
    assert np.array_equal(out[2:-2], wanted)
    assert (out[[0, 1, -2, -1]] == 77).all()
