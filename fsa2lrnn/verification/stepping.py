"""Proof that all runs give the right outputs although read-outs round: exact steps, and margins above rounding (T28).

The step of a dyadic repair multiplies and adds dyadic numbers that fit into the mantissa, so that it is exact in any
order of summation; LayerNorm and the read-out's products round, by no more than their error bound.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.checker.intervals import Ball
from fsa2lrnn.checker.margins import ScaledReadout
from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.checker.short_words import ShortWords, least_margin
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verification.extraction import ModelSystem
from fsa2lrnn.verification.plain import checked, slack_of
from fsa2lrnn.verification.specification import Specification

_NONE = 1 << 20  # the exponent of the lowest bit of zero, which has none
_AT_ONCE = 1 << 20  # products per batch


def is_right_in_every_order(model: LRNN, goal: Specification, rows: np.ndarray, states: np.ndarray) -> bool:
    """Decide whether steps from these states are exact and their outputs right, in any order of summation.

    `rows` are the bytes of the model states, uint8 (N, D), closed under letters, and `states` the machine states (N,).
    The tables must be the same in every evaluation of the gates. The result is False if any of this cannot be shown.
    """
    try:
        slack = slack_of(model)
        if np.any(slack.A) or np.any(slack.v):
            return False
        tables = checked(switched(model))
    except UnsupportedFormat:
        return False
    weights, kind = tables.weights, tables.format()
    x = ModelSystem(model).state_of(rows)[0].x.cpu().double().numpy()  # (N, H, b)
    if not steps_exactly(weights["A"], weights["v"], x, kind):
        return False
    words = ShortWords(states, np.zeros(len(states), np.int64), Ball.exact(x))
    with np.errstate(all="ignore"):
        return least_margin(words, ScaledReadout(weights, kind), goal.target) > 0


def steps_exactly(A: np.ndarray, v: np.ndarray, x: np.ndarray, kind: FloatFormat) -> bool:
    """Decide whether A_a x + v_a is exact for all letters and states, in any order of summation (T26).

    A (|Σ|, H, b, b), v (|Σ|, H, b) and x (N, H, b) are numbers of the format in float64. T26: sums are exact if all
    products and sums of a row are multiples of one power of two, and small enough multiples for the mantissa.

    >>> half, third = (np.array(c).reshape(1, 1, 1, 1) for c in (0.5, 1 / 3))
    >>> x, v, kind = np.array([[[0.25]]]), np.ones((1, 1, 1)), FloatFormat.of("float32")
    >>> steps_exactly(half, v, x, kind), steps_exactly(np.float64(np.float32(third)), v, x, kind)
    (True, False)
    """
    if not all(np.isfinite(part).all() for part in (A, v, x)):
        return False
    most, least = -np.log2(kind.u), np.log2(kind.tiny)
    of_A, of_v = lowest_bit(A), lowest_bit(v)
    size = max(1, _AT_ONCE // A.size)
    for first in range(0, len(x), size):
        part = x[first : first + size, None, :, None, :]  # (N, 1, H, 1, b)
        unit = np.minimum((of_A + lowest_bit(part)).min(-1), of_v)  # (N, |Σ|, H, b)
        total = (np.abs(A) * np.abs(part)).sum(-1) + np.abs(v)
        is_nothing = total == 0
        exponent = np.log2(np.where(is_nothing, 1, total)) + 1e-9
        if not (is_nothing | ((exponent <= unit + most) & (unit >= least))).all():
            return False
    return True


def lowest_bit(x: np.ndarray) -> np.ndarray:
    """Return the exponent of the last 1 of each number in base two: 2 for 12 = 1100, a large number for zero.

    >>> lowest_bit(np.array([12.0, -0.75, 1.0])).tolist()
    [2, -2, 0]
    """
    mantissa, exponent = np.frexp(x)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    last = np.log2(np.where(x == 0, 1, whole & -whole)).astype(np.int64)
    return np.where(x == 0, _NONE, exponent - 53 + last)
