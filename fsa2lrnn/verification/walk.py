"""The joint breadth-first walk: pairs (model state, machine state), a level at a time, as far as words can still fail.

The prover and the exhaustive search walk so. The judge of certificates has a walk of its own (`check.enumeration`).
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.extraction.walk import FrontierSuccessors, R, S, TransitionSystem, WordFrontier
from fsa2lrnn.verification.goal import Specification


class JointWalk(WordFrontier[S, R]):
    """A model beside its goal; the tags are the machine's states."""

    def __init__(self, system: TransitionSystem[S, R], goal: Specification) -> None:
        super().__init__(system, goal.start)
        self._goal = goal

    @property
    def live(self) -> np.ndarray:
        """The letters worth reading after each word, those after which some output still counts: bool (N, |Σ|)."""
        return self._goal.live[:, self.tags].T

    def look(self) -> tuple[FrontierSuccessors[S, R], np.ndarray]:
        """One live letter further: the words ahead, and the machine's states there, int64 (M,)."""
        live = self.live
        return self.fan(live), self._goal.delta[:, self.tags].T[live]
