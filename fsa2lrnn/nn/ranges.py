"""The range of each operation in which the bounds on its rounding hold; outside of it a bound is infinite.

A bound of `RoundedNumbers` or `Zonotopes` concerns the number that torch's CPU code computes, in the order and format
of that code. Let M bound the sizes of n operands, and let L be the largest number of the format.

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

from torch import Tensor

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
