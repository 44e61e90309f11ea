"""Products of small matrices in registers against numpy's."""

from functools import partial

import numpy as np
import pytest
from numba import njit

from fsa2lrnn.lrnn.compiled.products import Matrix, Products
from fsa2lrnn.lrnn.compiled.vectors import instruction


def _write(rows, a, i, row_a, column_a, b, j, row_b, one, c, k, row_c, m, n, p, adds):
    rows.product(Matrix(a, i, row_a, column_a), Matrix(b, j, row_b, one), Matrix(c, k, row_c, one), m, n, p, adds)


_product, _add_product = (instruction(partial(_write, adds=adds), Products) for adds in (False, True))


@njit
def multiply(a, row_a, column_a, b, c, m, n, p, adds):
    if adds:
        _add_product(4, (a, 0, row_a, column_a, b, 0, p, 1, c, 0, p, m, n, p))
    else:
        _product(4, (a, 0, row_a, column_a, b, 0, p, 1, c, 0, p, m, n, p))


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(("m", "n", "p"), [(1, 1, 4), (5, 3, 16), (4, 7, 36), (9, 1, 20), (0, 2, 4), (6, 0, 8)])
def test_products_are_those_of_numpy(m, n, p, adds):
    draw = np.random.default_rng(0)
    a, b, c = (draw.standard_normal(shape) for shape in ((m, n), (n, p), (m, p)))
    wanted = a @ b + (c if adds else 0)
    for given, row, column in ((a, n, 1), (a.T, 1, m)):
        found = c.copy().reshape(-1)
        multiply(np.ascontiguousarray(given).reshape(-1), row, column, b.reshape(-1), found, m, n, p, adds)
        np.testing.assert_allclose(found.reshape(m, p), wanted, rtol=1e-13, atol=1e-13)
