"""Read the fields, lists and exact numbers of a certificate, and raise `RejectedCertificate` for bad ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

MAX_BITS = 10_000  # of the least common denominator of numbers that are added up
WORK = 1 << 26
"""The default bound on the steps of a check: a few seconds. A step is an operation on a small number."""
_left: ContextVar[list[int]] = ContextVar("steps left, steps allowed")
HEADER = ("format", "version", "family", "verdict", "machine")


class RejectedCertificate(ValueError):
    """The error that a certificate does not prove its claim; the message names the first fault."""


@contextmanager
def allowing(work: int) -> Iterator[None]:
    """Limit the checks inside this block to `work` steps, beyond which `spend` raises `RejectedCertificate`."""
    token = _left.set([work, work])
    try:
        yield
    finally:
        _left.reset(token)


def spend(steps: int) -> None:
    """Count steps that are about to be taken; raise `RejectedCertificate` beyond the bound of `allowing`."""
    budget = _left.get(None)
    if budget is not None:
        budget[0] -= steps
        fault = (
            f"the check takes more than {budget[1]:,} steps, its bound: if the certificate's author is trusted, give"
        )
        require(budget[0] >= 0, f"{fault} a larger `work` to `recheck`")


def steps_of(numbers: Iterable[Any]) -> int:
    """Return the number of steps that it takes to multiply each of these numbers by a small one.

    It is linear in the length of an integer, and quadratic in that of a fraction, which is reduced by a common divisor.
    """
    steps = 0
    for x in numbers:
        if type(x) is int:
            steps += 1 + (x.bit_length() >> 6)
        else:
            steps += 8 + ((x.numerator.bit_length() + x.denominator.bit_length()) >> 6) ** 2
    return steps


def fields(value: Any, *names: str) -> list[Any]:
    """Return the values of an object's fields by name; raise `RejectedCertificate` if some are missing or unknown."""
    require(type(value) is dict, f"the value with {', '.join(names)} is not an object")
    odd = min(map(str, set(names) ^ set(value)), default=None)
    require(odd is None, f"{str(odd)[:80]!r} is missing or too many: expected are {', '.join(names)}")
    return [value[name] for name in names]


def as_list(value: Any) -> list[Any]:
    require(type(value) is list, f"{str(value)[:80]} is not a list")
    return value


def require(condition: bool, fault: str) -> None:
    if not condition:
        raise RejectedCertificate(fault)


def integers(texts: list[Any]) -> tuple[int, list[int]]:
    """Return the least common denominator of rationals, and the numerators over it; raise if it is too long."""
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
    """Return a row of rationals of this length, as `int` if all are integers."""
    require(len(as_list(value)) == length, f"a row has not {length} numbers")
    scale, numbers = integers(value)
    return numbers if scale == 1 else [Fraction(x, scale) for x in numbers]


def whole(value: Any, length: int) -> list[int]:
    require(len(as_list(value)) == length and all(type(x) is int for x in value), f"a row has not {length} integers")
    return value
