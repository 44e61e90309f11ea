"""Words that grow letter by letter beside the machine, judged as they grow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from fsa2lrnn.extraction.runner import States
from fsa2lrnn.extraction.walk import FrontierSuccessors
from fsa2lrnn.verification.falsify.judge import ModelComparison
from fsa2lrnn.verification.falsify.verdict import Failure
from fsa2lrnn.verification.walk import JointWalk


class ScoredFrontier(NamedTuple):
    """What live letters make of a frontier: M words, those of one parent side by side."""

    ahead: FrontierSuccessors[States, Tensor]
    q: np.ndarray  # of the machine, int64 (M,)
    margin: np.ndarray  # (M,), +∞ where nothing counts
    failure: Failure | None  # one of these words, if some of them fail


class Frontier(JointWalk[States, Tensor]):
    """A joint walk of the searches, which looks once more at words that seem to fail."""

    def __init__(self, judge: ModelComparison) -> None:
        super().__init__(judge.runner, judge.goal)
        self._judge = judge

    def judged(self) -> ScoredFrontier:
        """One letter further, leaving out letters after which no word can fail."""
        ahead, q = self.look()
        marks = self._judge.marks(ahead.read, q)
        words = [self.word(ahead, int(place)) for place in marks.worst(8)]
        return ScoredFrontier(ahead, q, marks.margin, self._judge.confirm_first(words))
