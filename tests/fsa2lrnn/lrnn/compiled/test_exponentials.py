"""Exponentials written as vector instructions, against those of numpy in a longer format."""

import numpy as np
import pytest
from numba import njit

from fsa2lrnn.lrnn.compiled.exponentials import Exponentials
from fsa2lrnn.lrnn.compiled.vectors import instruction

WIDTH = 4


def _write_exp(rows, x, i, out):
    rows.store(rows.exp(rows.load(x, i)), out, i)


def _write_shares(rows, x, i, y, m, of_x, of_y):
    for value, out in zip(rows.shares(rows.load(x, i), rows.load(y, i)), (m, of_x, of_y), strict=True):
        rows.store(value, out, i)


_exp, _shares = instruction(_write_exp, Exponentials), instruction(_write_shares, Exponentials)


@njit
def _all(x, out):
    for i in range(0, len(x), WIDTH):
        _exp(WIDTH, (x, i, out))


@njit
def _all_shares(x, y, m, of_x, of_y):
    for i in range(0, len(x), WIDTH):
        _shares(WIDTH, (x, i, y, m, of_x, of_y))


def exp(x):
    out = np.empty_like(x)
    _all(x, out)
    return out


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -87), (np.float64, -700)])
def test_exponentials_are_those_of_a_longer_format(dtype, lowest):
    x = np.concatenate([np.linspace(lowest, 0, 3000), np.linspace(-1e-3, 1e-3, 400), np.linspace(0, 80, 600)])
    x = x.astype(dtype)
    wanted = np.exp(x.astype(np.longdouble))
    assert float(np.abs(exp(x) / wanted - 1).max()) < 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_too_small_is_zero_and_what_is_no_number_stays_none(dtype):
    found = exp(np.array([0, -1e38, -np.inf, np.nan], dtype))
    assert found[0] == 1
    assert found[1] == found[2] == 0
    assert np.isnan(found[3])


def test_shares_are_exponentials_of_what_is_missing_to_the_larger():
    x = np.array([1.0, -5.0, -1e38, 300.0], np.float32)
    y = np.array([3.0, -5.0, 2.0, 0.0], np.float32)
    m, of_x, of_y = (np.empty_like(x) for _ in range(3))
    _all_shares(x, y, m, of_x, of_y)
    assert m.tolist() == [3, -5, 2, 300]
    assert of_x == pytest.approx([np.exp(-2), 1, 0, 1], rel=1e-6)
    assert of_y == pytest.approx([1, 1, 1, 0], rel=1e-6)
