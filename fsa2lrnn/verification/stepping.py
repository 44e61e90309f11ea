"""States that every run reaches though read-outs round: exact steps, and margins larger than rounding (T28).

The step of a dyadic repair multiplies and adds dyadic numbers that fit into the mantissa, so that no order of summation
rounds it; LayerNorm and the read-out's products round, by no more than their error bound.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.checker.intervals import Ball
from fsa2lrnn.checker.margins import ScaledReadout
from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.checker.short_words import ShortWords, least_margin
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extraction import ModelSystem
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verification.goal import Specification
from fsa2lrnn.verification.plain import checked
from fsa2lrnn.verification.slack import slack_of

_NONE = 1 << 20  # the exponent of the lowest bit of zero, which has none
_AT_ONCE = 1 << 20  # products


def is_right_in_every_order(model: LRNN, goal: Specification, rows: np.ndarray, states: np.ndarray) -> bool:
    """Whether a step from any of these states rounds nothing, and each output read there is right, whatever the order
    of sums: states as bytes (N, D) with those of the machine (N,), closed under letters.

    The tables must be the same in every evaluation of the gates. False where one of this can't be shown.
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
    """Whether A_a x + v_a rounds for no letter and no state, in any order of summation (T26): (|Σ|, H, b, b), (|Σ|, H,
    b), (N, H, b), numbers of the format in float64.

    All products and sums of a row must be multiples of a power of two, of no more than a mantissa can tell apart.

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
    """The exponent of the last 1 of each number in base two: 12 = 1100 has 2; a large number for zero.

    >>> lowest_bit(np.array([12.0, -0.75, 1.0])).tolist()
    [2, -2, 0]
    """
    mantissa, exponent = np.frexp(x)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    last = np.log2(np.where(x == 0, 1, whole & -whole)).astype(np.int64)
    return np.where(x == 0, _NONE, exponent - 53 + last)
