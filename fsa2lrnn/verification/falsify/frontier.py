"""A frontier of words that is extended letter by letter and compared with the machine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from fsa2lrnn.extraction.runner import States
from fsa2lrnn.extraction.walk import FrontierSuccessors
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.verdict import Failure
from fsa2lrnn.verification.walk import JointWalk


class ScoredFrontier(NamedTuple):
    """A frontier extended by its live letters: M words with their margins, words of one parent adjacent."""

    ahead: FrontierSuccessors[States, Tensor]
    q: np.ndarray  # of the machine, int64 (M,)
    margin: np.ndarray  # (M,), +∞ where nothing counts
    failure: Failure | None  # the shortest of these words that fails


class Frontier(JointWalk[States, Tensor]):
    """A joint walk that confirms presumed counterexamples with the model itself."""

    def __init__(self, comparison: ModelComparison) -> None:
        super().__init__(comparison.runner, comparison.goal)
        self._comparison = comparison

    def scored(self) -> ScoredFrontier:
        """Return the frontier one letter further, without letters after which no word can fail."""
        ahead, q = self.look()
        marks = self._comparison.marks(ahead.read, q)
        words = [self.word(ahead, int(place)) for place in marks.worst(8)]
        return ScoredFrontier(ahead, q, marks.margin, self._comparison.confirm_first(words))
