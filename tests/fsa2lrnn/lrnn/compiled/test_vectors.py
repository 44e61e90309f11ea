"""The operations on rows against numpy's, in integers, which do not round."""

import numpy as np
import pytest
import torch
from numba import njit

from fsa2lrnn.lrnn.compiled.memory import empty
from fsa2lrnn.lrnn.compiled.vectors import WIDEST, Rows, fence, instruction


def _write_all(rows, block, i, out, k):
    """The rows' sums, twice the first row plus the last, the first entry n times, and all squares: n + 3 rows."""
    loaded = [rows.load(block, i, row) for row in range(rows.n)]
    rows.store(rows.sums(loaded), out, k)
    rows.store(rows.plus(rows.plus(loaded[0], loaded[0]), loaded[-1]), out, k, 1)
    rows.store(rows.repeat(loaded[0], 0), out, k, 2)
    for row, each in enumerate(loaded):
        rows.stream(rows.times(each, each), out, k, row + 3)


_all = instruction(_write_all)


def kernel(width):
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
    kernel(width)(memory, 5, out.reshape(-1), 2 * width)
    wanted = [block.sum(1), 2 * block[0] + block[-1], np.full(width, block[0, 0]), *block**2]
    assert np.array_equal(out[2:-2], wanted)
    assert (out[[0, 1, -2, -1]] == 77).all()


def test_an_instruction_may_be_written_in_more_operations():
    class More(Rows):
        def thrice(self, x):
            return self.plus(x, self.plus(x, x))

    triple = instruction(lambda rows, x, i: rows.store(rows.thrice(rows.load(x, i)), x, i), More)

    @njit
    def run(x):
        triple(2, (x, 1))

    x = np.array([1.0, 2, 3, 4])
    run(x)
    assert x.tolist() == [1, 6, 9, 4]
