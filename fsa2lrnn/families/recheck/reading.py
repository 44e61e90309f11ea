"""Fields, lists and exact numbers of a certificate; `Rejected` where they are not what they should be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

MAX_BITS = 10_000  # of the least common denominator of numbers that are added up
WORK = 1 << 26
"""Steps that a check may take unless told otherwise: a few seconds. A step is an operation on a small number."""
_left: ContextVar[list[int]] = ContextVar("steps left, steps allowed")
HEADER = ("format", "version", "family", "verdict", "machine")


class RejectedCertificate(ValueError):
    """The certificate does not prove what it says; the message names the first thing that is wrong."""


@contextmanager
def allowing(work: int) -> Iterator[None]:
    """Let what runs inside take `work` steps, after which `spend` raises `Rejected`."""
    token = _left.set([work, work])
    try:
        yield
    finally:
        _left.reset(token)


def spend(steps: int) -> None:
    """Count steps before they are taken. Raises `Rejected` if the check would take more than it may."""
    budget = _left.get(None)
    if budget is not None:
        budget[0] -= steps
        fault = (
            f"the check takes more than {budget[1]:,} steps, its bound: if the certificate's author is trusted, give"
        )
        require(budget[0] >= 0, f"{fault} a larger `work` to `recheck`")


def steps_of(numbers: Iterable[Any]) -> int:
    """Steps that a product of each of these numbers with a small one takes.

    Products of integers take time in proportion to their length; those of fractions, which are reduced by their
    greatest common divisor, to its square.
    """
    steps = 0
    for x in numbers:
        if type(x) is int:
            steps += 1 + (x.bit_length() >> 6)
        else:
            steps += 8 + ((x.numerator.bit_length() + x.denominator.bit_length()) >> 6) ** 2
    return steps


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
        raise RejectedCertificate(fault)


def integers(texts: list[Any]) -> tuple[int, list[int]]:
    """Rationals as integers over their least common denominator, and that."""
    require(all(type(text) in (int, str) for text in texts), "a number is neither an integer nor a text such as 2/3")
    spend(sum(len(text) // 8 for text in texts if type(text) is str))
    numbers = [Fraction(text) if "/" in str(text) else int(text) for text in texts]
    scale = 1
    for denominator in {number.denominator for number in numbers}:
        scale = math.lcm(scale, denominator)
        require(scale.bit_length() <= MAX_BITS, f"a common denominator has more than {MAX_BITS} bits")
    spend(2 * len(numbers) * steps_of([scale]))
    return scale, [number.numerator * (scale // number.denominator) for number in numbers]


def rationals(value: Any, length: int) -> list[Any]:
    """Rationals, integers as such."""
    require(len(as_list(value)) == length, f"a row has not {length} numbers")
    scale, numbers = integers(value)
    return numbers if scale == 1 else [Fraction(x, scale) for x in numbers]


def whole(value: Any, length: int) -> list[int]:
    require(len(as_list(value)) == length and all(type(x) is int for x in value), f"a row has not {length} integers")
    return value
