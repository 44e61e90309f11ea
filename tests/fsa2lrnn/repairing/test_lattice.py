"""Dyadic solutions solve their equations, lie on their grid, and lie near."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.repairing.dyadic import Coset


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(0, 3))
def test_solutions_are_exact_and_near(seed, r, coarse):
    rng = np.random.default_rng(seed)
    b, grid = r + 3, 8
    U = np.round(rng.standard_normal((r, b)) * 2.0**coarse) / 2.0**coarse
    coset = Coset(U, coarse, grid)
    if not coset.is_onto:
        return
    t = np.round(rng.standard_normal(r) * 2.0 ** (grid + coarse)) / 2.0 ** (grid + coarse)
    near = rng.standard_normal(b)
    found = coset.nearest(t, near)
    assert np.array_equal(U @ found, t)
    assert np.array_equal(found * 2.0**grid, np.round(found * 2.0**grid))
    real = near + np.linalg.pinv(U) @ (t - U @ near)  # the nearest without a grid
    assert np.linalg.norm(found - real) < 2.0 ** (coarse * r + 4 - grid)


def test_the_nearest_of_a_small_grid():
    coset = Coset(np.array([[1.0, 1.0, 0.0]]), coarse=0, grid=1)
    near, t = np.array([0.3, 0.4, -0.2]), np.array([0.5])
    points = [p for p in itertools.product(np.arange(-2, 2.5, 0.5), repeat=3) if p[0] + p[1] == 0.5]
    best = min(np.linalg.norm(near - p) for p in points)
    assert np.isclose(np.linalg.norm(coset.nearest(t, near) - near), best)


def test_common_factors_are_seen():
    assert Coset(np.array([[2.0, 3.0]]), 0, 2).is_onto
    assert not Coset(np.array([[3.0, 6.0]]), 0, 2).is_onto
    assert not Coset(np.array([[1.0, 2.0], [2.0, 4.0]]), 0, 2).is_onto
