"""Numbers to places on paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Scale = Callable[[float], float]
_DECADES = 5  # of a symmetric logarithm, below 1


def linear(low: float, high: float, left: float, right: float) -> Scale:
    """low ↦ left, high ↦ right; everything to the middle where there is nothing to tell apart."""
    if high == low:
        return lambda _: (left + right) / 2
    return lambda value: left + (value - low) / (high - low) * (right - left)


def logarithmic(low: float, high: float, left: float, right: float) -> Scale:
    """The same for logarithms of positive numbers."""
    inner = linear(math.log10(low), math.log10(high), left, right)
    return lambda value: inner(math.log10(value))


def symmetric(value: float) -> float:
    """A logarithm of both signs, −5 at −1, 5 at 1 and 0 where a number is within 10⁻⁵ of 0.

    >>> symmetric(-0.001), symmetric(1e-7)
    (-2.0, 0.0)
    """
    size = abs(value) * 10**_DECADES
    return math.copysign(math.log10(size), value) if size > 1 else 0.0


def fit(
    points: Sequence[tuple[float, float]], size: float, margin: float
) -> Callable[[float, float], tuple[float, float]]:
    """One scale for both axes that puts all points into a square, y upwards."""
    reach = max((max(abs(x), abs(y)) for x, y in points), default=1.0) or 1.0
    scale = linear(-reach, reach, margin, size - margin)
    return lambda x, y: (scale(x), size - scale(y))


def short(n: int) -> str:
    """A length on an axis.

    >>> [short(n) for n in (40, 500, 5_000, 50_000, 1_000_000)]
    ['40', '500', '5k', '50k', '1M']
    """
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if n >= size and n % (size // 10) == 0:
            return f"{n / size:g}{letter}"
    return f"{n:,}"
