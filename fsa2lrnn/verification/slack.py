"""What tables may differ by that other evaluations of a model's gates make: computed from the model, for every entry.

Whoever checks a certificate computes it anew, so that no certificate can claim less than its model's gates may do.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine, table_error


def slack_of(model: LRNN | SwitchedAffine, more: float = 0.0) -> Slack:
    """What the tables of any evaluation of `model` may differ by from `switched(model)`, and `more` in each entry.

    Tables given as such are what is scanned; so are those of gates that look them up (`Layer.is_lookup`), or add up
    integers.

    Raises:
        UnsupportedFormat: for a layer that bounds no rounding, for numbers near the end of the format's range, where
            nothing is bounded, and for a `more` that is no number of at least 0.
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
