"""Frontiers of words that are extended letter by letter, and the exhaustive search: all words, shortest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import counted
from fsa2lrnn.verification.extraction.runner import States
from fsa2lrnn.verification.extraction.walk import FrontierSuccessors
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.verdict import Budget, Failure, SearchOutcome
from fsa2lrnn.verification.walk import JointWalk


class ScoredFrontier(NamedTuple):
    """The M one-letter extensions of a frontier's words, with margins; extensions of one word are adjacent."""

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
        """Return the frontier's words extended by one letter, without letters after which no word can fail."""
        ahead, q = self.look()
        marks = self._comparison.marks(ahead.read, q)
        words = [self.word(ahead, int(place)) for place in marks.worst(8)]
        return ScoredFrontier(ahead, q, marks.margin, self._comparison.confirm_first(words))


def exhaustive(comparison: ModelComparison, budget: Budget, below: int, clock: Deadline) -> SearchOutcome:
    """Search every word of fewer than `below` letters, until a level would hold more than `budget.words` joint states.

    Words into states from which no output counts are left out. Of words that lead to the same bits of the model's state
    and the same machine state, only the first is extended, since their continuations agree. If no new pair is reached,
    the reachable joint state set is finite, and no word of any length fails.
    """
    words = Frontier(comparison)
    level = 0.0  # seconds that the last length took
    while len(words):
        n_next = int(words.live.sum())
        is_at_limit = n_next > budget.words or words.length + 1 >= below
        if is_at_limit or level * n_next / len(words) > clock.left():
            reached = f"{counted(len(words), 'joint state')} at that length"
            what = f"all words of at most {counted(words.length, 'letter')}, {reached}"
            return SearchOutcome(None, what, words.length, len(words), words.letters, is_at_limit)
        begun = clock.passed()
        scored = words.scored()
        if scored.failure is not None:
            return SearchOutcome(scored.failure, "all words", words.length, len(words), words.letters)
        words.keep_new(scored.ahead, scored.q)
        level = clock.passed() - begun
    what = f"all words; no more than {counted(words.seen, 'joint state')} can be reached"
    return SearchOutcome(None, what, words.length, 0, words.letters, closed=True)
