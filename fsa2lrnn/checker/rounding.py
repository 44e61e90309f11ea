"""Bounds on the rounding of a step of the recurrence and of a read-out, as the model computes them.

With unit roundoff u, a sum of n products is off by at most γ_n Σ|products|, γ_n = n u / (1 − n u), whatever the order
of its terms and whether or not multiplications are fused with additions (Higham, "Accuracy and Stability of Numerical
Algorithms", §3.1). Numbers too small for the format add at most its smallest normal number `tiny` per operation, and
`tiny` times the other factor where processors flush such numbers to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .intervals import above

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
