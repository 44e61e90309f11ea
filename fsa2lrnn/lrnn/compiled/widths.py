"""Kernels on numbers that lie side by side, compiled once for each width of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, wraps
from typing import TypeVar

from fsa2lrnn.lrnn.compiled.vectors import WIDEST

Kernels = TypeVar("Kernels")


def by_width(make: Callable[[int], Kernels]) -> Callable[[int], Kernels]:
    """The kernels for so many numbers side by side: made once for each width of vectors that they divide into.

    >>> widths = by_width(lambda width: [width])
    >>> widths(48), widths(20), widths(7), widths(20) is widths(4)
    ([16], [4], [1], True)
    """
    made = cache(make)

    @wraps(make)
    def kernels(n: int) -> Kernels:
        return made(math.gcd(n, WIDEST))

    return kernels
