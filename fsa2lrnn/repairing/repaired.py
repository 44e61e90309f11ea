"""The result of a repair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from fsa2lrnn.display import Brief
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.repairing.dyadic import Places
from fsa2lrnn.repairing.representation import Representation
from fsa2lrnn.verdicts import Scope

Mode = Literal["least", "deadbeat", "dyadic"]
"""The aim of a repair: the least change, dead-beat blocks, or dead-beat blocks with exact arithmetic."""


class Change(NamedTuple):
    """The relative change ‖after − before‖ / ‖before‖ (Frobenius) of the tables A, the tables v, and x₀."""

    A: float
    v: float
    x0: float


@dataclass(frozen=True, eq=False)
class RepairedHead(Brief):
    """The repair of one block.

    Args:
        head: the number of the block.
        image: the exact affine image of the machine that it implements; row q of `image.phi` belongs to state
            `Repaired.states[q]` of the minimal machine, the last row to the initial state.
        told: R², the share of the image's variance that a read-out explained before the repair.
        residual_before, residual_after: the residuals of L6's equations (`ReadoutProbe.residual`).
        change: the relative change (Frobenius) of the block's A.
    """

    head: int
    image: Representation
    told: float
    residual_before: float
    residual_after: float
    change: float


@dataclass(frozen=True, eq=False)
class Repaired(Brief):
    """A repaired model of the trained class, and the changes made.

    Args:
        model: the repaired model, whose tables implement an exact image of the machine.
        mode: the option of `repair`.
        heads: the blocks with an image; the others are unchanged or, in a dead-beat model, forget everything.
        states: int64 (n + 1,), states of the minimal machine by number; the last is the initial one.
        scope: the outputs of the machine that counted.
        change: the relative change (Frobenius) of A, v and x₀, over all letters and blocks.
        places: the binary places of a dyadic model, else None.
    """

    model: LRNN
    mode: Mode
    heads: tuple[RepairedHead, ...]
    states: np.ndarray
    scope: Scope
    change: Change
    places: Places | None

    def to_json(self) -> dict[str, Any]:
        """Return all fields but the model as a JSON object."""
        return {
            "mode": self.mode,
            "change": self.change._asdict(),
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
