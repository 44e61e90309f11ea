"""Expressions of ModArith, drawn, and their values by Python's own arithmetic, not by any automaton."""

from __future__ import annotations

import re

import numpy as np


def random_expression(n_digits: int, modulus: int, rng: np.random.Generator) -> str:
    """`n_digits` digits below `modulus` with operators drawn from + − * between them.

    >>> random_expression(4, 5, np.random.default_rng(0))
    '4+3+2+1'
    """
    digits = rng.integers(modulus, size=n_digits)
    operators = rng.choice(list("+-*"), size=n_digits - 1)
    return str(digits[0]) + "".join(f"{op}{digit}" for op, digit in zip(operators, digits[1:], strict=True))


def evaluate(expression: str) -> int:
    """The value over the integers: products first, then sums.

    >>> evaluate("1+2-3*4")
    -9
    """
    total = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", expression):
        value = 1
        for factor in term.split("*"):
            value *= int(factor)
        total += -value if sign == "-" else value
    return total
