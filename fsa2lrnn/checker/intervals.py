"""Balls of float64 arrays: arithmetic that encloses the exact result, several thousand times faster than exact.

A ball is a midpoint and a radius, entry by entry. Midpoints are computed as usual, in whatever order numpy and BLAS
sum; the rounding error is bounded afterwards (Rump, "Fast and parallel interval arithmetic", BIT 39, 1999): a value
that takes at most 2¹² rounded additions and multiplications is off by at most 2⁻⁴¹ times the same expression in
absolute values. `EPS` = 2⁻⁴⁰ leaves a factor of two, which covers the rounding of that bound itself. Radii are
therefore much wider than necessary; against the rounding of float32, 2⁻²⁴ per operation, this is negligible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import require

EPS = 2.0**-40
TINY = 2.0**-1000  # more than underflow may lose in all
LONGEST_SUM = 1 << 10  # terms of one sum, so that four sums within one another stay below 2¹² roundings


def above(x: np.ndarray) -> np.ndarray:
    """Return an upper bound of a sum of products of non-negative numbers that was computed as x."""
    return x * (1 + EPS) + TINY


@dataclass(frozen=True, eq=False)
class Ball:
    """All arrays that differ from `mid` by at most `rad` in each entry."""

    mid: np.ndarray
    rad: np.ndarray

    @classmethod
    def exact(cls, x: np.ndarray) -> Ball:
        """Return the ball that holds only this array."""
        mid = np.asarray(x, np.float64)
        return cls(mid, np.zeros_like(mid))

    @property
    def size(self) -> np.ndarray:
        """An upper bound of the absolute value of every element."""
        return above(np.abs(self.mid) + self.rad)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of every element."""
        rad = above(EPS * np.abs(self.mid) + self.rad)
        return self.mid - rad, self.mid + rad

    @property
    def mT(self) -> Ball:
        """The ball of the matrices with their last two axes exchanged."""
        return Ball(self.mid.swapaxes(-1, -2), self.rad.swapaxes(-1, -2))

    def __getitem__(self, key: Any) -> Ball:
        return Ball(self.mid[key], self.rad[key])

    def __add__(self, other: Ball) -> Ball:
        mid = self.mid + other.mid
        return Ball(mid, above(EPS * np.abs(mid) + self.rad + other.rad))

    def __sub__(self, other: Ball) -> Ball:
        return self + Ball(-other.mid, other.rad)

    def __mul__(self, other: Ball) -> Ball:
        mid = self.mid * other.mid
        spread = np.abs(self.mid) * other.rad + self.rad * (np.abs(other.mid) + other.rad)
        return Ball(mid, above(EPS * np.abs(mid) + spread))

    def __matmul__(self, other: Ball) -> Ball:
        """Return matrix products over the last two axes. Raises `UnsupportedInput` for sums of over 1,024 terms."""
        terms = self.mid.shape[-1]
        require(terms <= LONGEST_SUM, f"a sum of {terms:,} terms: the bounds on rounding hold up to {LONGEST_SUM:,}")
        left, right = np.abs(self.mid), np.abs(other.mid)
        spread = left @ (EPS * right + other.rad) + self.rad @ (right + other.rad)
        return Ball(self.mid @ other.mid, above(spread))


def norm(size: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return an upper bound of the Euclidean norms, along an axis, of vectors with entries up to `size` ≥ 0 in size."""
    return above(np.sqrt(above((size * size).sum(axis))))


def spectral_norm(M: Ball) -> np.ndarray:
    """Return an upper bound of the largest singular value of every matrix of the ball: (…, p, q) -> (…).

    λ_max of G = MᵀM by Gershgorin's circles around VᵀGV, with V the approximate eigenvectors: for x = V y it is
    xᵀGx ≤ λ_max(VᵀGV) |y|² and |x|² ≥ (1 − δ) |y|², δ = ‖VᵀV − I‖_∞.

    Where entries or their squares are not finite, the bound is not finite either, or an error of arithmetic is raised.
    """
    if 0 in M.mid.shape[-2:]:
        return np.zeros(M.mid.shape[:-2])
    gram = M.mT @ M
    V = Ball.exact(np.linalg.eigh(gram.mid)[1])
    defect = (V.mT @ V - Ball.exact(np.eye(V.mid.shape[-1]))).size.sum(-1).max(-1)
    if not (defect <= 0.5).all():
        raise ArithmeticError("no orthogonal eigenvectors were found: the matrix is too large, or not finite")
    # The largest absolute row sum bounds every eigenvalue of VᵀGV (Gershgorin).
    circles = (V.mT @ gram @ V).size.sum(-1).max(-1)
    return above(np.sqrt(above(circles / (1 - above(defect)))))


def inverse(T: np.ndarray) -> Ball:
    """Return a ball about the inverses of matrices, (…, b, b): with X T = I − E it is T⁻¹ − X = (E + E² + …) X.

    Raises `ZeroDivisionError` or `LinAlgError` for a matrix that is singular, or nearly so.
    """
    X = Ball.exact(np.linalg.inv(T))
    E = (Ball.exact(np.eye(T.shape[-1])) - X @ Ball.exact(T)).size.sum(-1, keepdims=True).max(-2, keepdims=True)
    # ‖E‖ < 1 makes the Neumann series converge, with the sum of its norms at most ‖E‖ / (1 − ‖E‖).
    if not (E < 0.5).all():
        raise ZeroDivisionError("a matrix is singular, or too close to it for its inverse to be enclosed")
    return Ball(X.mid, above(E / (1 - above(E)) * X.size.max(-2, keepdims=True) + np.zeros_like(T)))
