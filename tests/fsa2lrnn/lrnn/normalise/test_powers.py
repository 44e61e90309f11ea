"""Powers written as vector instructions, against powers in a longer format."""

import math

import numpy as np
import pytest
import torch
from numba import njit

from fsa2lrnn.lrnn.compiled.vectors import instruction
from fsa2lrnn.lrnn.normalise.column_kernels import Powers, _powers

WIDTH = 4


def _write_power(rows, x, i, powers, zero, out):
    short, rest = rows.load(powers, zero), rows.load(powers, zero, 1)
    rows.store(rows.power(rows.load(x, i), short, rest), out, i)


_power = instruction(_write_power, Powers)


@njit
def _all(x, powers, out):
    for i in range(0, len(x), WIDTH):
        _power(WIDTH, (x, i, powers, 0, out))


def power(x, q):
    """x^q, entry by entry."""
    dtype = torch.from_numpy(x).dtype
    out = np.empty_like(x)
    _all(x, _powers(q + 1, WIDTH, dtype).numpy(), out)
    return out


@pytest.mark.parametrize("q", [0.0, 0.2, 0.5, 1.0, 6.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_are_those_of_the_standard_library(dtype, q):
    span = math.log(np.finfo(dtype).max) / max(q, 1) * 0.95
    x = np.exp(np.random.default_rng(0).uniform(-span, span, 4_000)).astype(dtype)
    x[:400] = np.linspace(0.9, 1.1, 400)
    wanted = np.array([np.longdouble(value) ** np.longdouble(q + 1 - 1) for value in x.tolist()])
    error = np.abs(power(x, q) / wanted - 1)
    assert error.max() < 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("q", [0.0, 0.2, 1.0, 6.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_is_one_and_zero_and_what_is_nearly_zero_are_zero(dtype, q):
    x = np.array([1, 0, np.finfo(dtype).tiny / 2, 1], dtype)
    assert power(x, q).tolist() == [1, 0, 0, 1]


def test_what_leaves_the_range_ends_at_its_ends():
    largest = np.finfo(np.float32).max
    x = np.array([largest, 1e30, 1e-30, 1e-36], np.float32)
    found = power(x, 6.5)
    assert (found[:2] >= 2.0**127).all()
    assert (found[2:] <= 2.0**-126).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_has_a_positive_power(wrong):
    assert (power(np.full(WIDTH, wrong), 0.2) > 0).all()
