import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.rows import distinct_rows, number_rows


@st.composite
def tables(draw):
    width = draw(st.integers(0, 4))
    row = st.lists(st.integers(-3, 5), min_size=width, max_size=width)
    drawn = draw(st.lists(row, min_size=1, max_size=12))
    return np.array(drawn, np.int64).reshape(len(drawn), width)


@given(tables())
def test_distinct_rows_are_those_of_numpy(rows):
    found, number = distinct_rows(rows)
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert number.tolist() == inverse.reshape(-1).tolist()


@pytest.mark.parametrize("width", [8, 13, 40])
def test_rows_of_more_codes_than_fit_an_integer(width):
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**10), 2**10, (50, width))
    rows = rows[rng.integers(50, size=200)]
    assert (np.sort(rows[np.argsort(number_rows(rows))], axis=0) == np.sort(rows, axis=0)).all()
    found, number = distinct_rows(rows)
    assert found.tolist() == np.unique(rows, axis=0).tolist()
    assert (found[number] == rows).all()


def test_no_rows():
    found, number = distinct_rows(np.zeros((0, 3), np.int64))
    assert (found.shape, number.shape) == ((0, 3), (0,))


def test_rows_are_numbered_alike_just_when_equal():
    rows = np.array([[2**40, 3, 2**40], [2**40, 3, 2**40], [2**40, 3, 5], [0, 3, 5]])
    a, b, c, d = number_rows(rows).tolist()
    assert a == b
    assert len({a, c, d}) == 3
