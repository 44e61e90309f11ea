"""Bounds on the difference between the tables of any two evaluations of a model's gates, for every entry.

The check of a certificate recomputes these bounds, so that a certificate cannot understate its model's rounding.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine, table_error


def slack_of(model: LRNN | SwitchedAffine, more: float = 0.0) -> Slack:
    """Return bounds on how far the tables of any evaluation of `model` differ from `switched(model)`, plus `more`.

    The bounds are `more` alone for tables, for gates that look their tables up (`Layer.is_lookup`), and for gates that
    sum integers.

    Raises:
        UnsupportedFormat: for a layer that does not bound its rounding, for numbers near the end of the format's range,
            and for a `more` that is negative, infinite or NaN.
    """
    if not 0 <= more < np.inf:
        raise UnsupportedFormat(f"slack = {more}: what tables may differ by is a number of at least 0")
    if isinstance(model, SwitchedAffine):
        return Slack(more, more)
    A, v = (error.numpy() for error in table_error(model))
    if not (np.isfinite(A).all() and np.isfinite(v).all()):
        raise UnsupportedFormat(
            "nothing bounds by how much the tables of this model may differ from one shape of call to the next: its "
            "gates' numbers come near the end of the format's range, or p is over 64; let "
            "LRNN.from_affine(switched(model)) look them up"
        )
    return Slack(A + more, v + more)
