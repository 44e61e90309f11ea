"""The joint breadth-first walk over pairs (model state, machine state), level by level, while words can still fail.

The prover and the exhaustive search use it. The check of certificates has a separate walk (`enumeration`).
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.extraction.walk import FrontierSuccessors, R, S, TransitionSystem, WordFrontier
from fsa2lrnn.verification.specification import Specification


class JointWalk(WordFrontier[S, R]):
    """A breadth-first frontier of a model with its specification; the tags are the machine's states."""

    def __init__(self, system: TransitionSystem[S, R], goal: Specification) -> None:
        super().__init__(system, goal.start)
        self._goal = goal

    @property
    def live(self) -> np.ndarray:
        """The letters, for each word of the frontier, after which some output still counts: bool (N, |Σ|)."""
        return self._goal.live[:, self.tags].T

    def look(self) -> tuple[FrontierSuccessors[S, R], np.ndarray]:
        """Return the words of the frontier extended by one live letter, and their machine states, int64 (M,)."""
        live = self.live
        return self.fan(live), self._goal.delta[:, self.tags].T[live]
