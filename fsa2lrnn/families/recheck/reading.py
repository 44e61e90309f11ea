"""Fields, lists and exact numbers of a certificate; `Rejected` where they are not what they should be."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

MAX_BITS = 10_000  # of the least common denominator of numbers that are added up
HEADER = ("format", "version", "family", "verdict", "machine")


class Rejected(ValueError):
    """The certificate does not prove what it says; the message names the first thing that is wrong."""


def fields(value: Any, *names: str) -> list[Any]:
    """The values of an object that has these fields and no others."""
    require(type(value) is dict, f"an object of {', '.join(names)} is no object")
    odd = min(map(str, set(names) ^ set(value)), default=None)
    require(odd is None, f"{str(odd)[:80]!r} is missing or too many: expected are {', '.join(names)}")
    return [value[name] for name in names]


def as_list(value: Any) -> list[Any]:
    require(type(value) is list, "something is no list")
    return value


def require(condition: bool, fault: str) -> None:
    if not condition:
        raise Rejected(fault)


def integers(texts: list[Any]) -> tuple[int, list[int]]:
    """Rationals as integers over their least common denominator, and that."""
    require(all(type(text) in (int, str) for text in texts), "a number is neither an integer nor a text such as 2/3")
    numbers = [Fraction(text) if "/" in str(text) else int(text) for text in texts]
    scale = 1
    for denominator in {number.denominator for number in numbers}:
        scale = math.lcm(scale, denominator)
        require(scale.bit_length() <= MAX_BITS, f"a common denominator has more than {MAX_BITS} bits")
    return scale, [number.numerator * (scale // number.denominator) for number in numbers]


def rationals(value: Any, length: int) -> list[Any]:
    """Rationals, integers as such."""
    require(len(as_list(value)) == length, f"a row has not {length} numbers")
    scale, numbers = integers(value)
    return numbers if scale == 1 else [Fraction(x, scale) for x in numbers]


def whole(value: Any, length: int) -> list[int]:
    require(len(as_list(value)) == length and all(type(x) is int for x in value), f"a row has not {length} integers")
    return value
