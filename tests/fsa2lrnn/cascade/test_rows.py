"""Numbering of repeated rows."""

import numpy as np
import pytest

from fsa2lrnn.cascade.rows import distinct_rows, number_rows


@pytest.mark.parametrize("width", [8, 13, 40])
def test_rows_of_more_codes_than_fit_an_integer(width):
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**10), 2**10, (50, width))
    rows = rows[rng.integers(50, size=200)]
    assert (np.sort(rows[np.argsort(number_rows(rows))], axis=0) == np.sort(rows, axis=0)).all()
    found, number = distinct_rows(rows)
    assert found.tolist() == np.unique(rows, axis=0).tolist()
    assert (found[number] == rows).all()
