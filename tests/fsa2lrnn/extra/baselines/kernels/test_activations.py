"""The tail of the normal distribution against the standard library's."""

import math
from statistics import NormalDist

import pytest

from fsa2lrnn.extra.baselines.kernels.activations import place, tail


@pytest.mark.parametrize(("degree", "bound"), [(9, 1e-9), (20, 1e-14)])
def test_the_polynomial_is_the_tail_of_the_normal_distribution(degree, bound):
    for a in (0.0, 0.01, 0.5, 1.0, 1.5, 3.0, 6.0, 8.9):
        p = sum(c * place(a) ** k for k, c in enumerate(tail(degree)))
        assert abs(math.exp(-(a**2) / 2) * p - NormalDist().cdf(-a)) < bound


def test_places_run_from_1_to_minus_1():
    assert place(0.0) == 1.0
    assert place(9.0) == pytest.approx(-1.0)
    assert -2 < place(1e9) < -1
