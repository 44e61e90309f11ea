"""Bounds on the difference of any two floating-point evaluations of an expression, for all orders of summation.

A gate is computed by a matrix library, in an order that depends on the shape of the call, on the batch and on the
number of threads, with fused multiplication and addition or without. With unit round-off u, any order computes a sum of
n products within γ_n Σ|products| of the exact sum, γ_n = n u / (1 − n u), apart from underflow (Higham, "Accuracy and
Stability of Numerical Algorithms", §3.1). `RoundedNumbers` propagates such bounds (docs/theory.md, T27): `mid` is the
expression as float64 computes it, and `off` bounds the distance of any evaluation in the format from `mid`, so it
includes the rounding of float64. Bounds are computed in float64 and enlarged by a factor 1 + 2⁻³⁰, which exceeds their
own rounding many times.

The bounds assume IEEE arithmetic, exp and pow of the C library and of torch to 4 units in the last place, and that
LayerNorm on the CPU treats each row separately, in a way that depends on its length alone (a test checks it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.linalg import vector_norm

from fsa2lrnn.checker.rounding import FloatFormat

_U64 = 2.0**-53
_OUTWARD = 1 + 2.0**-30
_FLOOR = 1e-12  # of the norms that keys are divided by
_STEEPEST = 64.0  # orders of norms up to which powers are bounded here


@dataclass(frozen=True, eq=False)
class RoundedNumbers:
    """Numbers that every evaluation in a format computes within `off` of `mid`, both float64, entry by entry.

    Where `off` is zero, every evaluation gives `mid` itself. Where no bound is known, `off` is infinite.

    >>> third = RoundedNumbers.exact(torch.ones(1), FloatFormat.of(torch.float32)).scaled(1 / 3)
    >>> float((torch.ones(1) * (1 / 3)).double() - third.mid) <= float(third.off) < 1e-7
    True
    """

    mid: Tensor
    off: Tensor
    kind: FloatFormat

    @classmethod
    def exact(cls, x: Tensor, kind: FloatFormat | None = None) -> RoundedNumbers:
        """Return numbers that are equal in every evaluation, in the format of x unless `kind` names another."""
        mid = x.detach().cpu().double()
        return cls(mid, torch.zeros_like(mid), kind or FloatFormat.of(x.dtype))

    @property
    def size(self) -> Tensor:
        """An upper bound on the absolute value in any evaluation."""
        return (self.mid.abs() + self.off) * _OUTWARD

    @property
    def is_exact(self) -> bool:
        """Whether every evaluation computes the midpoints."""
        return not self.off.any()

    def of(self, mid: Tensor, off: Tensor) -> RoundedNumbers:
        """Return numbers in the same format; the bound of NaN and of a number that may overflow becomes infinite."""
        off = off * _OUTWARD
        is_bounded = (mid.abs() + off <= self.kind.largest / 4) & mid.isfinite()
        return RoundedNumbers(torch.where(is_bounded, mid, 0), torch.where(is_bounded, off, torch.inf), self.kind)

    def where(self, mask: Tensor) -> RoundedNumbers:
        """Return the numbers within the mask and zero outside."""
        return RoundedNumbers(self.mid.where(mask, 0), self.off.where(mask, 0), self.kind)

    def unflatten(self, sizes: tuple[int, ...]) -> RoundedNumbers:
        """Return the same numbers with the last axis split into several."""
        return RoundedNumbers(self.mid.unflatten(-1, sizes), self.off.unflatten(-1, sizes), self.kind)

    def __getitem__(self, key: object) -> RoundedNumbers:
        return RoundedNumbers(self.mid[key], self.off[key], self.kind)  # type: ignore[index]

    def scaled(self, factor: float) -> RoundedNumbers:
        """Return the products with `factor`, in float64 or rounded to the format."""
        return self.of(self.mid * factor, self.off * abs(factor) + self.scale_rounding(factor))

    def scale_rounding(self, factor: float) -> Tensor:
        """Return a bound on the rounding alone of products with `factor`, and on that of the factor."""
        units = 1 if math.frexp(factor)[0] / self.kind.u % 1 == 0 else 3  # the format has the factor, or rounds it
        return units * both(self.kind) * self.size * abs(factor) + 4 * self.kind.tiny

    def linear(self, W: Tensor, b: Tensor) -> RoundedNumbers:
        """Return W x + b with W (n, d) and b (n,), which are the same in every evaluation: (…, d) -> (…, n).

        A term that is zero in every evaluation is added without rounding, so it does not count among the n of γ_n.
        """
        W, b = W.detach().cpu().double(), b.detach().cpu().double()
        return self.of(self.mid @ W.T + b, self.off @ W.abs().T + self.linear_rounding(W, b))

    def linear_rounding(self, W: Tensor, b: Tensor) -> Tensor:
        """Return a bound on the rounding alone of W x + b, for float64 weights: (…, n)."""
        size, weights = self.size, W.abs()
        terms = (size != 0).double() @ (W != 0).double().T + (b != 0)
        sums = size @ weights.T + b.abs()
        small = self.kind.tiny * (8 * terms + 4 * weights.sum(-1) + 4 * size.sum(-1, keepdim=True) + 4)
        rounding = self._gamma(terms + 1) * sums + small * (terms > 0)
        return torch.where(sums <= self.kind.largest / 4, rounding, torch.inf)

    def relu(self) -> RoundedNumbers:
        """Return the positive parts, which are computed without rounding."""
        off = torch.where(self.mid < 0, (self.mid + self.off * _OUTWARD).clamp(min=0), self.off)
        return RoundedNumbers(self.mid.relu(), off, self.kind)

    def __mul__(self, other: RoundedNumbers) -> RoundedNumbers:
        spread = self.off * other.size + self.size * other.off
        return self.of(self.mid * other.mid, spread + self.product_rounding(other))

    def product_rounding(self, other: RoundedNumbers) -> Tensor:
        """Return a bound on the rounding alone of a product, zero where one factor is."""
        sizes = self.size * other.size
        small = self.kind.tiny * (4 + 2 * self.size + 2 * other.size)
        return both(self.kind) * sizes + small * (sizes > 0)

    def __sub__(self, other: RoundedNumbers) -> RoundedNumbers:
        return self.of(self.mid - other.mid, self.off + other.off + self.sum_rounding(other))

    def sum_rounding(self, other: RoundedNumbers) -> Tensor:
        """Return a bound on the rounding alone of a sum or a difference."""
        return both(self.kind) * (self.size + other.size) + 2 * self.kind.tiny

    def __matmul__(self, other: RoundedNumbers) -> RoundedNumbers:
        """Return the matrix products over the last two axes."""
        spread = self.off @ other.size + self.size @ other.off
        return self.of(self.mid @ other.mid, spread + self.products_rounding(other))

    def products_rounding(self, other: RoundedNumbers) -> Tensor:
        """Return a bound on the rounding alone of matrix products."""
        n, size, there = self.mid.shape[-1], self.size, other.size
        sums = size @ there
        small = self.kind.tiny * (8 * (n + 1) + 4 * size.sum(-1, keepdim=True) + 4 * there.sum(-2, keepdim=True))
        rounding = self._gamma(self.mid.new_tensor(n + 1.0)) * sums + small
        return torch.where(sums <= self.kind.largest / 4, rounding, torch.inf)

    def sigmoid(self) -> RoundedNumbers:
        """Return 1 / (1 + e^−x); the sigmoid changes by at most a quarter of a change of x."""
        mid = self.mid.sigmoid()
        return self.of(mid, self.off / 4 + 32 * both(self.kind) * (mid + self.off / 4) + 4 * self.kind.tiny)

    def normalised(self) -> RoundedNumbers:
        """Return x / max(‖x‖₂, 10⁻¹²) along the last axis; the error bounds use that no entry exceeds 1."""
        over = RoundedNumbers(self.mid.unsqueeze(-1), self.off.unsqueeze(-1), self.kind)
        low, middle, high = norm_bounds(over, 2.0)
        middle = middle.clamp(min=_FLOOR)
        off = over.divided(middle, low.clamp(min=_FLOOR / 2), high.clamp(min=2 * _FLOOR))
        mid = (over.mid / middle).squeeze(-1)
        bound = off.squeeze(-1).clamp(max=2.1).where(self.off.isfinite().all(-1, keepdim=True), torch.inf)
        return self.of(mid, bound)

    def columns(self, rule: str, p: float) -> RoundedNumbers:
        """Return blocks under a column rule, with bounds for both methods of `normalise`: (…, b, b) -> (…, b, b)."""
        if rule == "none":
            return self
        if rule == "clip":
            low, middle, high = (norm.clamp(min=1) for norm in norm_bounds(self, p))
            off = torch.where(high > 1, self.divided(middle, low, high), self.off)  # division by 1 is exact
            return self.of(self.mid / middle, off)
        centred = self.centred()
        low, middle, high = (norm.amax(-1, keepdim=True) for norm in norm_bounds(centred, p))
        return self.of(centred.mid / middle, centred.divided(middle, low, high))

    def largest(self, mask: Tensor) -> RoundedNumbers:
        """Return one-hot columns at the first largest entry within the mask: (…, b, b) -> (…, b, b).

        Where rounding can move the 1, each entry that may be the largest has an error bound of 1.
        """
        mid, off = self.mid.masked_fill(~mask, -torch.inf), self.off.where(mask, 0)
        first = mid.argmax(-2, keepdim=True)
        hot = torch.zeros_like(mid).scatter_(-2, first, 1)
        lead = mid.gather(-2, first) - mid
        may_be = ~(lead > (off.gather(-2, first) + off) * _OUTWARD) & mask  # true for the first, too, and for NaN
        is_free = (off != 0).any(-2, keepdim=True) & (may_be.sum(-2, keepdim=True) > 1)
        return RoundedNumbers(hot, (may_be & is_free).double(), self.kind)

    def centred(self) -> RoundedNumbers:
        """Return the columns minus their means: (…, b, b) -> (…, b, b)."""
        b, mean_size = self.mid.shape[-2], self.size.mean(-2, keepdim=True)
        mean = self.mid.mean(-2, keepdim=True)
        spread = self.off + self.off.mean(-2, keepdim=True)
        rounding = self._gamma(self.mid.new_tensor(b + 3.0)) * mean_size + 2 * both(self.kind) * (self.size + mean_size)
        return self.of(self.mid - mean, spread + rounding + 8 * self.kind.tiny)

    def divided(self, middle: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return error bounds of the quotients mid / middle, for divisors between `low` and `high`."""
        apart = torch.maximum(high - middle, middle - low) / (low * middle)
        return self.off / low + self.mid.abs() * apart + both(self.kind) * self.size / low + 4 * self.kind.tiny

    def _gamma(self, n: Tensor) -> Tensor:
        gammas = [n * u / (1 - n * u) for u in (self.kind.u, _U64)]
        return torch.where(n * self.kind.u < 0.5, (gammas[0] + gammas[1]) * _OUTWARD, torch.inf)


def norm_bounds(columns: RoundedNumbers, p: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return p-norms of columns, `low` <= any evaluation <= `high` and `middle` in float64, for p up to 64: (…, 1, b).

    Both methods of the column rule form (Σ|x|^p)^(1/p). A power has a relative error of at most 8u or, computed as
    |x|·|x|^(p−1) by two series, of (12p + 11)u, of which the root leaves a p-th; a rounded p changes the norm by at
    most a factor b^(u/p), a rounded 1/p by N^u. Powers below the smallest normal number may be lost: if the norm's own
    power is 2⁴⁰ times as large, that costs less than a unit. Otherwise only an upper bound is known: the norm is small.
    If a power may overflow, no bound is known.
    """
    kind, b = columns.kind, columns.mid.shape[-2]
    own = (b + 128) * _U64  # of norms in float64, which are scaled to be near 1
    middle, spread = _norm(columns.mid, p), _norm(columns.off, p) * (1 + own)
    high, low = middle * (1 + own) + spread, (middle * (1 - own) - spread).clamp(min=0)
    logs = high.log().abs().nan_to_num(0, 0, 0), low.log().abs().nan_to_num(0, 0, 0)
    relative = [(b + 64 + 2 * log) * both(kind) for log in logs]
    high, low = high * (1 + relative[0]), low * (1 - relative[1])
    fits = high.log2() * p + math.log2(b) <= math.log2(kind.largest) - 4
    is_lost = low.log2() * p <= math.log2(kind.tiny) + 40
    unknown = ~fits | (p > _STEEPEST)
    low = torch.where(is_lost | unknown, 0, low)
    high = torch.where(is_lost, high.clamp(min=(b * kind.tiny * 2.0**42) ** (1 / p)), high)
    return low, middle, torch.where(unknown, torch.inf, high)


def both(kind: FloatFormat) -> float:
    """Return the unit round-offs of a format and of float64, added."""
    return (kind.u + _U64) * _OUTWARD


def integers(kind: FloatFormat) -> float:
    """Return a number up to which a format represents all integers and float64 sums their absolute values exactly."""
    return min(1 / kind.u, 2.0**52)


def _norm(x: Tensor, p: float) -> Tensor:
    """Return the p-norms of columns without intermediate overflow: (…, b, c) -> (…, 1, c)."""
    largest = x.abs().amax(-2, keepdim=True)
    is_plain = (largest > 0) & largest.isfinite()
    unit = torch.where(is_plain, x / torch.where(is_plain, largest, 1), 0)
    norms = largest * vector_norm(unit, ord=p, dim=-2, keepdim=True)
    return torch.where(is_plain, norms, largest)
