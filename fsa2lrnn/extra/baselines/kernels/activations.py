"""GELU and the gates of `mixing` entry by entry, with their derivatives, as vector instructions.

The normal distribution's Φ(−a) for a ≥ 0 is e^{−a²/2} times a function that is smooth in 1/(1 + a/4) ∈ (0, 1]: there a
polynomial interpolates it as closely as the number type can tell. Derivatives are made on the way forward, from the
same exponential, so that the way back has but products.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from fsa2lrnn.lrnn.compiled.exponentials import Exponentials

_DEGREE = {4: 9, 8: 20}  # of the polynomial, by bytes
_FARTHEST = 9.0  # Φ(−9) is 1e-19
_SCALE = 0.25
_CUBIC, _SLOPE = 0.044715, math.sqrt(2 / math.pi)  # of the approximate GELU, ½ v (1 + tanh(slope (v + cubic v³)))


@cache
def tail(degree: int) -> tuple[float, ...]:
    """Coefficients of s^0, s^1, … of the polynomial p with Φ(−a) = e^{−a²/2} p(s) for a from 0 to 9, where s ∈ [−1, 1]
    is what `place` makes of a.

    >>> from statistics import NormalDist
    >>> s = place(1.5)
    >>> p = sum(c * s**k for k, c in enumerate(tail(9)))
    >>> abs(math.exp(-(1.5**2) / 2) * p - NormalDist().cdf(-1.5)) < 1e-9
    True
    """

    s = chebyshev.chebpts1(degree + 1)
    a = (1 / (1 + (s - 1) * (1 - _least()) / 2) - 1) / _SCALE
    ratios = np.array([math.erfc(each / math.sqrt(2)) * math.exp(each**2 / 2) / 2 for each in a.tolist()])
    return tuple(chebyshev.cheb2poly(chebyshev.chebfit(s, ratios, degree)).tolist())


def place(a: float) -> float:
    """1/(1 + a/4), moved and scaled so that a from 0 to 9 gives 1 to −1."""
    return 1 + 2 * (1 / (1 + _SCALE * a) - 1) / (1 - _least())


def _least() -> float:
    return 1 / (1 + _SCALE * _FARTHEST)


class Activations(Exponentials):
    """Instructions on rows of numbers, among them GELUs and σ."""

    def gelu(self, v: Any) -> tuple[Any, Any]:
        """v Φ(v) and its derivative Φ(v) + v φ(v)."""
        zero, one = self.constant(0.0), self.constant(1.0)
        a = self.pick(v, zero, v, self.minus(zero, v))
        bell = self.exp(self.times(self.times(a, a), self.constant(-0.5)))
        inverse = self.over(one, self.plus(one, self.times(a, self.constant(_SCALE))))
        factor = 2 / (1 - _least())
        s = self.plus(self.times(inverse, self.constant(factor)), self.constant(1 - factor))
        *lower, value = (self.constant(c) for c in tail(_DEGREE[self._size]))
        for c in reversed(lower):
            value = self.plus(self.times(value, s), c)
        beyond = self.times(bell, value)  # Φ(−a)
        share = self.pick(v, zero, self.minus(one, beyond), beyond)
        density = self.times(bell, self.constant(1 / math.sqrt(2 * math.pi)))
        return self.times(v, share), self.plus(share, self.times(v, density))

    def approximate_gelu(self, v: Any) -> tuple[Any, Any]:
        """v σ(2 slope (v + cubic v³)) and its derivative."""
        one, square = self.constant(1.0), self.times(v, v)
        cubic = self.times(square, self.constant(2 * _SLOPE * _CUBIC))
        share = self.sigmoid(self.times(v, self.plus(cubic, self.constant(2 * _SLOPE))))
        slope = self.plus(self.times(cubic, self.constant(3.0)), self.constant(2 * _SLOPE))
        rest = self.times(self.times(share, self.minus(one, share)), slope)
        return self.times(v, share), self.plus(share, self.times(v, rest))

    def sigmoid(self, z: Any) -> Any:
        """1/(1 + e^{−z})."""
        zero, one = self.constant(0.0), self.constant(1.0)
        small = self.exp(self.pick(z, zero, self.minus(zero, z), z))  # e^{−|z|}
        return self.over(self.pick(z, zero, one, small), self.plus(one, small))
