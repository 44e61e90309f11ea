"""What a step of the recurrence and a read-out may be off by, as the model computes them.

With unit roundoff u, a sum of n products is off by at most γ_n Σ|products|, γ_n = n u / (1 − n u), whatever the order
of its terms and whether or not multiplications are fused with additions (Higham, "Accuracy and Stability of Numerical
Algorithms", §3.1). Numbers too small for the format add at most its smallest normal number `tiny` an operation, and
`tiny` times the other factor where they are themselves taken for zero, as processors that flush such numbers do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .intervals import above

LARGEST = 2.0**40  # of states and of sums of weights, so that nothing overflows in either format
NORM_EPS = 1e-5  # what a LayerNorm adds to the variance
# Bits of the mantissa, the implicit one among them, and of the exponent.
_BITS = {"float16": (11, 5), "bfloat16": (8, 8), "float32": (24, 8), "float64": (53, 11)}


@dataclass(frozen=True)
class FloatFormat:
    """The numbers that matter of a floating-point type: unit roundoff, smallest normal and largest number."""

    u: float
    tiny: float
    largest: float

    @classmethod
    def of(cls, dtype: object) -> FloatFormat:
        """Return the format of a dtype by its name, such as "float32", in which "torch." may come first.

        >>> Format.of("float32") == Format(2.0**-24, 2.0**-126, float(np.finfo(np.float32).max))
        True
        """
        mantissa, exponent = _BITS[str(dtype).removeprefix("torch.")]
        bias = 2 ** (exponent - 1) - 1
        return cls(2.0**-mantissa, 2.0 ** (1 - bias), (2 - 2.0 ** (1 - mantissa)) * 2.0**bias)

    def gamma(self, n: float) -> float:
        """At least γ_n; infinite where nothing is bounded."""
        return n * self.u / (1 - n * self.u) * (1 + 2.0**-40) if n * self.u < 0.5 else float("inf")


class Slack(NamedTuple):
    """|A' − A| and |v' − v| at most, for all tables A' and v' that are meant: arrays of their shapes, or one number."""

    A: np.ndarray | float = 0.0
    v: np.ndarray | float = 0.0


@dataclass(frozen=True, eq=False)
class StepError:
    """How far a computed step, by any tables within a slack of A and v, may be from A x + v."""

    matrix: np.ndarray  # (|Σ|, H, b, b)
    constant: np.ndarray  # (|Σ|, H, b)

    @classmethod
    def of(cls, A: np.ndarray, v: np.ndarray, slack: Slack, kind: FloatFormat) -> StepError:
        """Bounds |error| ≤ matrix |x| + constant."""
        b, gamma = A.shape[-1], kind.gamma(A.shape[-1] + 1)
        size_A, size_v = np.abs(A) + slack.A, np.abs(v) + slack.v
        small = kind.tiny * (4 * (b + 1) + 2 * size_A.sum(-1))
        return cls(above(gamma * size_A + slack.A + 2 * kind.tiny), above(gamma * size_v + slack.v + small))


@dataclass(frozen=True, eq=False)
class ReadoutError:
    """How far computed logits may be from exact ones, for states of entries up to M and √(variance + ε) up to σ.

    Times σ, logit j is off by at most of_size_j M + of_sigma_j σ, once the scale 1/σ that LayerNorm computes is taken
    as it is; that itself is off by a factor 1 ± `scale(M, σ)`.

    LayerNorm may sum in any order, in one pass over x and x², in two, or updating its mean and variance as it goes and
    merging such parts. Of n entries up to M in size, the mean is off by at most (2n + 16) u M. The variance is off by
    (16n + 128) u M²: the mean's error enters each of the n deviations, of size up to 2M, twice, and merging, at most
    ten times over for n ≤ 1,024, does so once more each; the bound is for that, the worst of the three.
    """

    of_size: np.ndarray  # (|Γ|,)
    of_sigma: np.ndarray
    width: int
    kind: FloatFormat

    @classmethod
    def of(cls, weights: dict[str, np.ndarray], kind: FloatFormat) -> ReadoutError:
        W1, b1, W2, b2 = (np.abs(weights[name]) for name in ("W1", "b1", "W2", "b2"))
        m, n = W1.shape
        u = kind.u * (1 + 2.0**-20)
        if "norm_weight" not in weights:
            of_size, of_sigma = np.ones(n), np.zeros(n)
            error_size, error_sigma = np.zeros(n), np.zeros(n)
        else:
            w, c = np.abs(weights["norm_weight"]), np.abs(weights["norm_bias"])
            of_size, of_sigma = 2 * w, c  # |y| σ
            # What is too small of x − μ is lost times w/σ, 1/σ < 2⁹; what is of w/σ, times x − μ, and σ < 2⁴².
            error_size = w * ((2 * n + 16) * u + 32 * u) + 2.0**44 * kind.tiny
            error_sigma = 4 * u * c + 8 * kind.tiny * (1 + 2.0**9 * w)
        hidden_size, hidden_sigma = W1 @ of_size, W1 @ of_sigma + b1
        inner, outer = kind.gamma(n + 4), kind.gamma(m + 4)
        small_inner = kind.tiny * (4 * (n + 1) + 2 * (W1.sum(-1) + of_sigma.sum()))
        small_outer = kind.tiny * (4 * (m + 1) + 2 * (W2.sum(-1) + 2 * hidden_sigma.sum()))
        error_size = W1 @ error_size + inner * hidden_size + 2 * kind.tiny * of_size.sum()
        error_sigma = W1 @ error_sigma + inner * hidden_sigma + small_inner
        # A hidden unit is off by this and so is at most twice the exact bound: the factor 2 before `outer`.
        return cls(
            above(W2 @ error_size + 2 * outer * (W2 @ hidden_size) + 4 * kind.tiny * hidden_size.sum()),
            above(W2 @ error_sigma + 2 * outer * (W2 @ hidden_sigma + b2) + small_outer),
            n,
            kind,
        )

    def scale(self, size: np.ndarray, least_sigma: np.ndarray) -> np.ndarray:
        """Relative error of the computed 1/σ, at least; infinite where the variance may be lost altogether."""
        wrong = (16 * self.width + 128) * self.kind.u * (size * size) + 8 * self.kind.u * NORM_EPS
        part = above(wrong / (least_sigma * least_sigma))
        return np.where(part < 0.25, above(part + 8 * self.kind.u), np.inf)
