"""Balls of float64 arrays: arithmetic that encloses the exact result, several thousand times faster than exact.

A ball is a midpoint and a radius, entry by entry. Midpoints are computed as usual, in whatever order numpy and BLAS
sum; what that may have cost is bounded afterwards (Rump, "Fast and parallel interval arithmetic", BIT 39, 1999): a
value that takes at most 2¹² rounded additions and multiplications is off by at most 2⁻⁴¹ times the same expression
in absolute values. `EPS` = 2⁻⁴⁰ leaves a factor of two, which pays for computing that bound in floats itself. Radii
are so much wider than need be; against the rounding of float32, 2⁻²⁴ an operation, that is nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import UnsupportedInput

EPS = 2.0**-40
TINY = 2.0**-1000  # more than all that underflow may have lost
LONGEST_SUM = 1 << 10  # terms of one sum, so that four sums within one another stay below 2¹² roundings


def above(x: np.ndarray) -> np.ndarray:
    """At least the exact value of a sum of products of non-negative numbers that came out as x."""
    return x * (1 + EPS) + TINY


@dataclass(frozen=True, eq=False)
class Ball:
    """All arrays that differ from `mid` by at most `rad` in each entry."""

    mid: np.ndarray
    rad: np.ndarray

    @classmethod
    def exact(cls, x: np.ndarray) -> Ball:
        """The array itself."""
        mid = np.asarray(x, np.float64)
        return cls(mid, np.zeros_like(mid))

    @property
    def size(self) -> np.ndarray:
        """At least the absolute value of every element."""
        return above(np.abs(self.mid) + self.rad)

    @property
    def lower(self) -> np.ndarray:
        """At most every element."""
        return self.mid - above(EPS * np.abs(self.mid) + self.rad)

    @property
    def upper(self) -> np.ndarray:
        """At least every element."""
        return self.mid + above(EPS * np.abs(self.mid) + self.rad)

    @property
    def mT(self) -> Ball:
        """The last two axes exchanged."""
        return Ball(self.mid.swapaxes(-1, -2), self.rad.swapaxes(-1, -2))

    def joined(self) -> Ball:
        """The first two axes as one."""
        shape = (-1, *self.mid.shape[2:])
        return Ball(self.mid.reshape(shape), self.rad.reshape(shape))

    def __getitem__(self, key: Any) -> Ball:
        return Ball(self.mid[key], self.rad[key])

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def __add__(self, other: Ball) -> Ball:
        mid = self.mid + other.mid
        return Ball(mid, above(EPS * np.abs(mid) + self.rad + other.rad))

    def __sub__(self, other: Ball) -> Ball:
        return self + -other

    def __mul__(self, other: Ball) -> Ball:
        mid = self.mid * other.mid
        spread = np.abs(self.mid) * other.rad + self.rad * (np.abs(other.mid) + other.rad)
        return Ball(mid, above(EPS * np.abs(mid) + spread))

    def __truediv__(self, other: Ball) -> Ball:
        """Raises `ZeroDivisionError` where the divisor may be zero."""
        least = np.abs(other.mid) * (1 - EPS) - other.rad
        if (least <= TINY).any():
            raise ZeroDivisionError("a divisor's ball holds zero, or comes too close to it")
        mid = self.mid / other.mid
        return Ball(mid, above(EPS * np.abs(mid) + (self.rad + np.abs(mid) * (1 + EPS) * other.rad) / least))

    def __matmul__(self, other: Ball) -> Ball:
        """Matrix products over the last two axes. Raises `UnsupportedInput` for sums of over 1,024 terms."""
        if self.mid.shape[-1] > LONGEST_SUM:
            raise UnsupportedInput(
                f"a sum of {self.mid.shape[-1]:,} terms: the bounds on rounding hold up to {LONGEST_SUM:,}"
            )
        left, right = np.abs(self.mid), np.abs(other.mid)
        spread = left @ (EPS * right + other.rad) + self.rad @ (right + other.rad)
        return Ball(self.mid @ other.mid, above(spread))


def norm(size: np.ndarray, axis: int = -1) -> np.ndarray:
    """At least the Euclidean norm of every vector with entries up to `size` ≥ 0 in absolute value."""
    return above(np.sqrt(above((size * size).sum(axis))))


def spectral_norm(M: Ball) -> np.ndarray:
    """At least the largest singular value of every matrix of the ball: (…, p, q) -> (…).

    λ_max of G = MᵀM by Gershgorin's circles around VᵀGV, with V the approximate eigenvectors: for x = V y it is
    xᵀGx ≤ λ_max(VᵀGV) |y|² and |x|² ≥ (1 − δ) |y|², δ = ‖VᵀV − I‖_∞.

    Where entries or their squares are not finite, it is not either, or raises `ArithmeticError`.
    """
    if 0 in M.mid.shape[-2:]:
        return np.zeros(M.mid.shape[:-2])
    gram = M.mT @ M
    try:
        V = Ball.exact(np.linalg.eigh(gram.mid)[1])
    except np.linalg.LinAlgError as error:
        raise ArithmeticError("no eigenvectors were found: the matrix is too large, or not finite") from error
    defect = (V.mT @ V - Ball.exact(np.eye(V.mid.shape[-1]))).size.sum(-1).max(-1)
    if not (defect <= 0.5).all():
        raise ArithmeticError("no orthogonal eigenvectors were found: the matrix is too large, or not finite")
    circles = (V.mT @ gram @ V).size.sum(-1).max(-1)
    return above(np.sqrt(above(circles / (1 - above(defect)))))


def inverse(T: np.ndarray) -> Ball:
    """A ball about the inverses of matrices, (…, b, b): with X T = I − E it is T⁻¹ − X = (E + E² + …) X.

    Raises `ZeroDivisionError` for a matrix that is singular, or nearly so.
    """
    try:
        X = Ball.exact(np.linalg.inv(T))
    except np.linalg.LinAlgError as error:
        raise ZeroDivisionError("a matrix is singular") from error
    E = (Ball.exact(np.eye(T.shape[-1])) - X @ Ball.exact(T)).size.sum(-1, keepdims=True).max(-2, keepdims=True)
    if not (E < 0.5).all():
        raise ZeroDivisionError("a matrix is singular, or too close to it for its inverse to be enclosed")
    return Ball(X.mid, above(E / (1 - above(E)) * X.size.max(-2, keepdims=True) + np.zeros_like(T)))
