"""Bounds on the difference of any two floating-point evaluations of an expression, for all orders of summation.

A gate is computed by a matrix library, in an order that depends on the shape of the call, on the batch and on the
number of threads, with fused multiplication and addition or without. With unit round-off u, any order computes a sum of
n products within γ_n Σ|products| of the exact sum, γ_n = n u / (1 − n u), apart from underflow (Higham, "Accuracy and
Stability of Numerical Algorithms", §3.1). `RoundedNumbers` propagates such bounds (docs/theory.md, T27): `mid` is the
expression as float64 computes it, and `off` bounds the distance of any evaluation in the format from `mid`. Bounds are
computed in float64 and enlarged by a factor 1 + 2⁻³⁰, which exceeds their own rounding many times.

The bounds assume IEEE arithmetic, exp and pow of the C library and of torch to 4 units in the last place, and that
LayerNorm on the CPU treats each row separately, in a way that depends on its length alone (a test checks it).

Each bound holds in a range of sizes; outside of it the bound is infinite. A bound of `RoundedNumbers` or `Zonotopes`
concerns the number that torch's CPU code computes, in the order and format of that code. Let M bound the sizes of n
operands, and let L be the largest number of the format.

- Any result: size ≤ L/4. It does not overflow, nor does its sum with another.
- Sum, mean, product of matrices: the terms' sizes sum to at most L/4. Every partial sum, in any order, is at most that;
  the mean of half-precision numbers rounds their sum to the format before it divides.
- LayerNorm: 4 n M² ≤ L/4, L of float32 for half precision. Its moments are merged from parts: the square of a
  difference of means, at most 2M, times a count. The first part is merged with a count of 0, and ∞ · 0 would be NaN.
- p-norm: b M^p ≤ L/16 (`norm_bounds`, which sums powers).
- Division by max(‖x‖, floor): the format has the floor as a normal number, or ‖x‖ is bounded from below. 10⁻¹² is 0 in
  float16, and 0/0 is NaN.
- exp(−scale · softplus): scale ≤ L/4. One that overflowed, times a softplus that underflowed, would be NaN.
- Sigmoid, softmax, tanh, sin, cos, and exp of numbers ≤ 0: all finite arguments; infinite exponentials end as 0 or 1.

>>> import torch
>>> kind = FloatFormat.of("float32")
>>> [bool(moments_fit(torch.tensor(2.0**e), 4, kind)) for e in (60, 61)], floor_of(1e-12, FloatFormat.of("float16"))
([True, False], 0.0)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.linalg import vector_norm

from fsa2lrnn.checker.rounding import FloatFormat

_FLOAT32 = FloatFormat.of("float32")


def fits(sizes: Tensor, kind: FloatFormat) -> Tensor:
    """Return whether results, or sums of the terms' sizes, stay in the range: bool, of the shape of `sizes`."""
    return sizes <= kind.largest / 4


def moments_fit(largest: Tensor, n: int, kind: FloatFormat) -> Tensor:
    """Return whether LayerNorm over n entries of at most these sizes computes finite moments in every order."""
    return 4.0 * n * largest * largest <= largest_moment(kind)


def largest_moment(kind: FloatFormat) -> float:
    """Return the largest number that a moment of LayerNorm may reach."""
    moments = kind if kind.u < _FLOAT32.u else _FLOAT32  # half precision is normalised in float32
    return moments.largest / 4


def floor_of(least: float, kind: FloatFormat) -> float:
    """Return the lower limit of a divisor, or 0 if the format does not have it as a normal number."""
    return least if least >= 2 * kind.tiny else 0.0


_U64 = 2.0**-53
_OUTWARD = 1 + 2.0**-30
_FLOORS = (0.5e-12, 1e-12, 2e-12)  # of lower bounds, midpoints and upper bounds of norms that keys are divided by
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
        """Return numbers that are equal in every evaluation, in the format of x unless `kind` names another.

        NaN and infinity have no bound.
        """
        mid = x.detach().cpu().double()
        is_number = mid.isfinite()
        off = torch.zeros_like(mid).where(is_number, torch.inf)
        return cls(mid.where(is_number, 0), off, kind or FloatFormat.of(x.dtype))

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
        is_bounded = fits(mid.abs() + off, self.kind) & mid.isfinite()
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
        # The significand in [½, 1) is a multiple of u exactly if the format holds all its bits.
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
        # For each output the number of terms that are not zero in every evaluation, and the sum of their sizes.
        terms, sums = (size != 0).double() @ (W != 0).double().T + (b != 0), size @ weights.T + b.abs()
        # Underflow: each product may lose a subnormal number, and flushed operands lose up to `tiny` times the other
        # factor.
        small = self.kind.tiny * (8 * terms + 4 * weights.sum(-1) + 4 * size.sum(-1, keepdim=True) + 4)
        return self._bounded(self._gamma(terms + 1) * sums + small * (terms > 0), sums)

    def relu(self) -> RoundedNumbers:
        """Return the positive parts, which are computed without rounding."""
        # T27: relu is 1-Lipschitz. For a negative midpoint only the part of the interval above 0 is left.
        off = torch.where(self.mid < 0, (self.mid + self.off * _OUTWARD).clamp(min=0), self.off)
        return RoundedNumbers(self.mid.relu(), off, self.kind)

    def __mul__(self, other: RoundedNumbers) -> RoundedNumbers:
        # |xy − x'y'| ≤ |x − x'||y| + |x'||y − y'|; `size` bounds the numbers in every evaluation.
        off = self.off * other.size + self.size * other.off + self.product_rounding(other)
        return self.of(self.mid * other.mid, off)

    def product_rounding(self, other: RoundedNumbers) -> Tensor:
        """Return a bound on the rounding alone of a product, zero where one factor is."""
        both_sizes, sizes = self.size * other.size, self.size + other.size
        return both(self.kind) * both_sizes + self.kind.tiny * (4 + 2 * sizes) * (both_sizes > 0)

    def __sub__(self, other: RoundedNumbers) -> RoundedNumbers:
        off = self.off + other.off + both(self.kind) * (self.size + other.size) + 2 * self.kind.tiny
        return self.of(self.mid - other.mid, off)

    def __matmul__(self, other: RoundedNumbers) -> RoundedNumbers:
        """Return the matrix products over the last two axes."""
        off = self.off @ other.size + self.size @ other.off + self.products_rounding(other)
        return self.of(self.mid @ other.mid, off)

    def products_rounding(self, other: RoundedNumbers) -> Tensor:
        """Return a bound on the rounding alone of matrix products."""
        n, size, there = self.mid.shape[-1], self.size, other.size
        small = self.kind.tiny * (8 * (n + 1) + 4 * size.sum(-1, keepdim=True) + 4 * there.sum(-2, keepdim=True))
        return self._bounded(self._gamma(self.mid.new_tensor(n + 1.0)) * (size @ there) + small, size @ there)

    def _bounded(self, rounding: Tensor, sums: Tensor) -> Tensor:
        return torch.where(fits(sums, self.kind), rounding, torch.inf)

    def sigmoid(self) -> RoundedNumbers:
        """Return 1 / (1 + e^−x); the sigmoid changes by at most a quarter of a change of x."""
        # T27: the derivative is at most ¼; 32 units bound the relative error of an evaluation.
        mid, quarter = self.mid.sigmoid(), self.off / 4
        return self.of(mid, quarter + 32 * both(self.kind) * (mid + quarter) + 4 * self.kind.tiny)

    def normalised(self) -> RoundedNumbers:
        """Return x / max(‖x‖₂, 10⁻¹²) along the last axis; the error bounds use that no entry exceeds 1."""
        over = RoundedNumbers(self.mid.unsqueeze(-1), self.off.unsqueeze(-1), self.kind)
        low, middle, high = norm_bounds(over, 2.0)
        if floor_of(_FLOORS[0], self.kind):
            low = low.clamp(min=_FLOORS[0])
        middle, high = middle.clamp(min=_FLOORS[1]), high.clamp(min=_FLOORS[2])
        # Two entries of vectors of norm 1 differ by at most 2, and 2.1 leaves room for rounding.
        bound = over.divided(middle, low, high).squeeze(-1).clamp(max=2.1)
        is_known = self.off.isfinite().all(-1, keepdim=True) & (low[..., 0] > 0)
        return self.of((over.mid / middle).squeeze(-1), bound.where(is_known, torch.inf))

    def columns(self, rule: str, p: float) -> RoundedNumbers:
        """Return blocks under a column rule, with bounds for both methods of `normalise`: (…, b, b) -> (…, b, b)."""
        if rule == "none":
            return self
        if rule == "clip":
            # The rule divides by max(1, norm); where even the upper bound is 1, all evaluations divide by exactly 1.
            low, middle, high = (norm.clamp(min=1) for norm in norm_bounds(self, p))
            off = torch.where(high > 1, self.divided(middle, low, high), self.off)  # division by 1 is exact
            return self.of(self.mid / middle, off)
        centred = self.centred()
        # The bounds of a largest norm are the largest of the bounds.
        low, middle, high = (norm.amax(-1, keepdim=True) for norm in norm_bounds(centred, p))
        return self.of(centred.mid / middle, centred.divided(middle, low, high))

    def largest(self, mask: Tensor) -> RoundedNumbers:
        """Return one-hot columns at the first largest entry within the mask, errors of 1 where rounding can move it."""
        mid, off = self.mid.masked_fill(~mask, -torch.inf), self.off.where(mask, 0)
        first = mid.argmax(-2, keepdim=True)
        hot = torch.zeros_like(mid).scatter_(-2, first, 1)
        lead = mid.gather(-2, first) - mid
        may_be = ~(lead > (off.gather(-2, first) + off) * _OUTWARD) & mask  # true for the first, too, and for NaN
        # A column of exact entries breaks ties by the order of rows in every evaluation; only rounding makes the
        # choice free.
        is_free = (off != 0).any(-2, keepdim=True) & (may_be.sum(-2, keepdim=True) > 1)
        return RoundedNumbers(hot, (may_be & is_free).double(), self.kind)

    def is_ordered(self) -> Tensor:
        """Return whether all entries are finite and rounding changes the order of no two: (…, n) -> bool (…).

        If the intervals of two entries meet, one of them contains the midpoints between theirs: comparing neighbours
        suffices. Entries that are both exact may be equal.

        >>> kind = FloatFormat.of("float32")
        >>> [bool(RoundedNumbers(torch.tensor([0.0, x]), torch.tensor([0.0, 1.0]), kind).is_ordered()) for x in (-1, 2)]
        [False, True]
        """
        mid, order = self.mid.sort(-1)
        off = self.off.gather(-1, order)
        reach = off[..., 1:] + off[..., :-1]
        apart = (mid.diff(dim=-1) > reach * _OUTWARD) | (reach == 0)
        return apart.all(-1) & (self.mid.isfinite() & self.off.isfinite()).all(-1)

    def centred(self) -> RoundedNumbers:
        """Return the columns minus their means: (…, b, b) -> (…, b, b)."""
        b, size, mean_size = self.mid.shape[-2], self.size, self.size.mean(-2, keepdim=True)
        # The sum of b entries and the division give γ of the mean; the subtraction rounds a number of at most both
        # sizes.
        rounding = self._gamma(self.mid.new_tensor(b + 3.0)) * mean_size + 2 * both(self.kind) * (size + mean_size)
        off = self.off + self.off.mean(-2, keepdim=True) + self._bounded(rounding, b * mean_size) + 8 * self.kind.tiny
        return self.of(self.mid - self.mid.mean(-2, keepdim=True), off)

    def divided(self, middle: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return error bounds of the quotients mid / middle, for divisors between `low` and `high`."""
        # |1/d − 1/middle| = |d − middle| / (d·middle) is at most this for every divisor d between `low` and `high`.
        apart = torch.maximum(high - middle, middle - low) / low / middle  # low · middle may overflow
        return self.off / low + self.mid.abs() * apart + both(self.kind) * self.size / low + 4 * self.kind.tiny

    def _gamma(self, n: Tensor) -> Tensor:
        gamma, of_mid = (n * u / (1 - n * u) for u in (self.kind.u, _U64))
        return torch.where(n * self.kind.u < 0.5, (gamma + of_mid) * _OUTWARD, torch.inf)


def norm_bounds(columns: RoundedNumbers, p: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return p-norms of columns, `low` <= any evaluation <= `high` and `middle` in float64, for p up to 64: (…, 1, b).

    T27 derives the relative errors. Powers below the smallest normal number may be lost: if the norm's own power is 2⁴⁰
    times as large, that costs less than a unit; otherwise only an upper bound is known. If one may overflow, none is.
    """
    kind, b = columns.kind, columns.mid.shape[-2]
    own = (b + 128) * _U64  # of norms in float64, which are scaled to be near 1
    # Minkowski's inequality: ‖mid + e‖ differs from ‖mid‖ by at most ‖e‖ ≤ ‖off‖.
    middle, spread = _norm(columns.mid, p), _norm(columns.off, p) * (1 + own)
    high, low = middle * (1 + own) + spread, (middle * (1 - own) - spread).clamp(min=0)
    # T27: the relative error of a computed norm is (b + 64 + 2 |ln N|) u, for both formats together.
    logs = high.log().abs().nan_to_num(0, 0, 0), low.log().abs().nan_to_num(0, 0, 0)
    of_high, of_low = ((b + 64 + 2 * log) * both(kind) for log in logs)
    high, low = high * (1 + of_high), low * (1 - of_low)
    # The sum of b powers of size N^p stays below 1/16 of the largest number.
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
    # Entries are scaled to at most 1, so that no power overflows. The norm of a zero, infinite or NaN column is its
    # largest absolute value.
    unit = torch.where(is_plain, x / torch.where(is_plain, largest, 1), 0)
    norms = largest * vector_norm(unit, ord=p, dim=-2, keepdim=True)
    return torch.where(is_plain, norms, largest)
