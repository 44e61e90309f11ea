"""Bounds on rounding: of a step of the recurrence and of a read-out, as the model computes them, and of our own.

With unit roundoff u, a sum of n products is off by at most γ_n Σ|products|, γ_n = n u / (1 − n u), whatever the order
of its terms and whether or not multiplications are fused with additions (Higham, "Accuracy and Stability of Numerical
Algorithms", §3.1). Numbers too small for the format add at most its smallest normal number `tiny` per operation, and
`tiny` times the other factor where processors flush such numbers to zero.

Our own arithmetic is that of balls of float64 arrays. It encloses the exact result, several thousand times faster than
exact. A ball is a midpoint and a radius, entry by entry. Midpoints are computed as usual, in whatever order numpy and
BLAS sum; the rounding error is bounded afterwards (Rump, "Fast and parallel interval arithmetic", BIT 39, 1999): a
value that takes at most 2¹² rounded additions and multiplications is off by at most 2⁻⁴¹ times the same expression in
absolute values. `EPS` = 2⁻⁴⁰ leaves a factor of two, which covers the rounding of that bound itself. Radii are
therefore much wider than necessary; against the rounding of float32, 2⁻²⁴ per operation, this is negligible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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


LARGEST = 2.0**40  # of states and of sums of weights, so that nothing overflows in either format
NORM_EPS = 1e-5  # the number that LayerNorm adds to the variance
# Bits of the mantissa, the implicit one among them, and of the exponent.
_BITS = {"float16": (11, 5), "bfloat16": (8, 8), "float32": (24, 8), "float64": (53, 11)}


@dataclass(frozen=True)
class FloatFormat:
    """A floating-point type: unit roundoff, smallest normal and largest number."""

    u: float
    tiny: float
    largest: float

    @classmethod
    def of(cls, dtype: object) -> FloatFormat:
        """Return the format of a dtype by its name, such as "float32" or "torch.float32"."""
        mantissa, exponent = _BITS[str(dtype).removeprefix("torch.")]
        bias = 2 ** (exponent - 1) - 1
        return cls(2.0**-mantissa, 2.0 ** (1 - bias), (2 - 2.0 ** (1 - mantissa)) * 2.0**bias)

    def gamma(self, n: float) -> float:
        """Return an upper bound of γ_n; infinite where n u is too large for one."""
        return n * self.u / (1 - n * self.u) * (1 + 2.0**-40) if n * self.u < 0.5 else float("inf")


class Slack(NamedTuple):
    """Bounds on |A' − A| and |v' − v| for all tables A' and v' of the claim: arrays of their shapes, or one number."""

    A: np.ndarray | float = 0.0
    v: np.ndarray | float = 0.0


class StepError:
    """Bounds |error| ≤ matrix |x| + constant of a step A x + v, as computed with tables within a slack of A and v."""

    def __init__(self, A: np.ndarray, v: np.ndarray, slack: Slack, kind: FloatFormat) -> None:
        # A row of the step sums b products and one constant.
        b, gamma = A.shape[-1], kind.gamma(A.shape[-1] + 1)
        size_A, size_v = np.abs(A) + slack.A, np.abs(v) + slack.v
        # Underflow: up to `tiny` per operation, and `tiny` times the other factor where subnormal operands are flushed.
        small = kind.tiny * (4 * (b + 1) + 2 * size_A.sum(-1))
        self.matrix = above(gamma * size_A + slack.A + 2 * kind.tiny)  # (|Σ|, H, b, b)
        self.constant = above(gamma * size_v + slack.v + small)  # (|Σ|, H, b)


class ReadoutError:
    """Bounds on the rounding of logits, for states of entries up to M and √(variance + ε) up to σ.

    Times σ, logit j is off by at most of_size_j M + of_sigma_j σ, relative to the scale 1/σ that LayerNorm computes;
    that scale is off by a factor 1 ± `scale(M, σ)`.

    LayerNorm may sum in any order, in one pass over x and x², in two, or updating its mean and variance as it goes and
    merging such parts. Of n entries up to M in size, the mean is off by at most (2n + 16) u M. The variance is off by
    (16n + 128) u M²: the mean's error enters each of the n deviations, of size up to 2M, twice, and merging, at most
    ten times over for n ≤ 1,024, does so once more each; the bound is for merging, the worst of the three.
    """

    def __init__(self, weights: dict[str, np.ndarray], kind: FloatFormat) -> None:
        W1, b1, W2, b2 = (np.abs(weights[name]) for name in ("W1", "b1", "W2", "b2"))
        m, n = W1.shape
        u = kind.u * (1 + 2.0**-20)
        if "norm_weight" not in weights:
            of_size, of_sigma = np.ones(n), np.zeros(n)
            error_size, error_sigma = np.zeros(n), np.zeros(n)
        else:
            w, c = np.abs(weights["norm_weight"]), np.abs(weights["norm_bias"])
            of_size, of_sigma = 2 * w, c  # |y| σ
            # Underflow of x − μ is multiplied by w/σ, 1/σ < 2⁹; underflow of w/σ by x − μ, and σ < 2⁴².
            error_size = w * ((2 * n + 16) * u + 32 * u) + 2.0**44 * kind.tiny
            error_sigma = 4 * u * c + 8 * kind.tiny * (1 + 2.0**9 * w)
        # All bounds are linear in M and σ: "size" parts multiply M, "sigma" parts multiply σ.
        hidden_size, hidden_sigma = W1 @ of_size, W1 @ of_sigma + b1
        inner, outer = kind.gamma(n + 4), kind.gamma(m + 4)
        small_inner = kind.tiny * (4 * (n + 1) + 2 * (W1.sum(-1) + of_sigma.sum()))
        small_outer = kind.tiny * (4 * (m + 1) + 2 * (W2.sum(-1) + 2 * hidden_sigma.sum()))
        error_size = W1 @ error_size + inner * hidden_size + 2 * kind.tiny * of_size.sum()
        error_sigma = W1 @ error_sigma + inner * hidden_sigma + small_inner
        # A hidden unit is off by this, so it is at most twice the exact bound: the factor 2 before `outer`.
        of_size = above(W2 @ error_size + 2 * outer * (W2 @ hidden_size) + 4 * kind.tiny * hidden_size.sum())
        self.of_size, self._width, self._kind = of_size, n, kind  # (|Γ|,)
        self.of_sigma = above(W2 @ error_sigma + 2 * outer * (W2 @ hidden_sigma + b2) + small_outer)  # (|Γ|,)

    def scale(self, size: np.ndarray, least_sigma: np.ndarray) -> np.ndarray:
        """Return a bound on the relative error of the computed 1/σ; infinite where the variance may become negative."""
        # The absolute error of variance + ε; a relative error below 1/4 there is at most as large in the root and its
        # inverse.
        wrong = (16 * self._width + 128) * self._kind.u * (size * size) + 8 * self._kind.u * NORM_EPS
        part = above(wrong / (least_sigma * least_sigma))
        return np.where(part < 0.25, above(part + 8 * self._kind.u), np.inf)
