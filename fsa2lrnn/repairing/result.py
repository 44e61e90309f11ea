"""What a repair gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.repairing.dyadic import Places
from fsa2lrnn.repairing.representation import Representation
from fsa2lrnn.verdicts import Scope

Columns = Literal["keep", "p<=1"]
"""What a repair does with the columns: keeps them as they come, or holds their p-norms to 1."""
Mode = Literal["least", "deadbeat", "dyadic"]
"""What a repair is for: the least change, blocks that forget, or numbers that never round."""


class Change(NamedTuple):
    """‖after − before‖ / ‖before‖ (Frobenius) of the tables A, of the tables v, of x₀."""

    A: float
    v: float
    x0: float


@dataclass(frozen=True, eq=False)
class RepairedHead:
    """What was found in one block, and done to it.

    Args:
        head: the number of the block.
        image: the exact affine image of the machine that it now carries; row q of `image.phi` belongs to state
            `Repaired.states[q]` of the minimal machine, the last row to the initial state.
        told: R², the share of the variance of what it had learned that a read-out told before.
        residual_before, residual_after: by how much L6's equations failed and fail (`Probe.residual`).
        change: of the block's A, relative (Frobenius).
    """

    head: int
    image: Representation
    told: float
    residual_before: float
    residual_after: float
    change: float


@dataclass(frozen=True, eq=False)
class Repaired:
    """A model of the class that was trained, and what was changed in it.

    Args:
        model: its tables carry an exact image of the machine.
        mode, columns: as `repair` was asked.
        heads: the blocks that carry something; the others are as they were or, in a dead-beat model, forget everything.
        states: int64 (n + 1,), states of the minimal machine by number; the last is the initial one.
        scope: which of the machine's outputs counted.
        change: of A, v and x₀, relative (Frobenius), over all letters and blocks.
        p, column_norm_before, column_norm_after: the largest p-norm of a column of A.
        places: the binary places of a dyadic model, else None.
    """

    model: LRNN
    mode: Mode
    columns: Columns
    heads: tuple[RepairedHead, ...]
    states: np.ndarray
    scope: Scope
    change: Change
    p: float
    column_norm_before: float
    column_norm_after: float
    places: Places | None

    def to_json(self) -> dict[str, Any]:
        """All but the model, as a JSON object."""
        numbers = ("p", "column_norm_before", "column_norm_after")
        return {
            "mode": self.mode,
            "columns": self.columns,
            "change": self.change._asdict(),
            **{name: getattr(self, name) for name in numbers},
            "places": None if self.places is None else vars(self.places),
            "states": self.states.tolist(),
            "scope": self.scope.to_json(),
            "heads": [
                {
                    "head": head.head,
                    "rank": head.image.rank,
                    "classes": head.image.classes,
                    "phi": head.image.phi.tolist(),
                    **{name: getattr(head, name) for name in ("told", "residual_before", "residual_after", "change")},
                }
                for head in self.heads
            ],
        }
