"""Words that grow letter by letter, with the states of model and machine that they lead to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsa2lrnn.extraction.runner import States, pick
from fsa2lrnn.judge.falsify.judge import Judge
from fsa2lrnn.judge.falsify.tree import Tree
from fsa2lrnn.judge.falsify.verdict import Failure


class Ahead(NamedTuple):
    """What live letters make of a frontier: M words, those of one parent side by side."""

    states: States  # of the model, M
    q: np.ndarray  # of the machine, int64 (M,)
    parents: np.ndarray  # int64 (M,), which word of the frontier went before
    letters: np.ndarray  # int64 (M,)
    margin: np.ndarray  # (M,), +∞ where nothing counts
    failure: Failure | None  # one of these words, if some of them fail


class Frontier:
    """The words of one length that a search holds on to: the empty one, until the first letter.

    Attributes:
        states, q: what the words lead to in the model and in the machine.
        length: of the words.
        letters: steps that the model has taken.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge, self._tree = judge, Tree()
        self.states, self.q = judge.runner.start(), np.array([judge.start])
        self.length = self.letters = 0

    def __len__(self) -> int:
        return len(self.q)

    def look(self) -> Ahead:
        """One letter further, leaving out letters after which no word can fail."""
        live = self._judge.live[:, self.q].T  # (N, |Σ|)
        logits, after = self._judge.runner.fan(self.states, live)
        self.letters += len(logits)
        q = self._judge.delta[:, self.q].T[live]
        marks = self._judge.marks(logits, q)
        parents, letters = np.nonzero(live)
        failure = self._judge.confirm_first(self._tree.longer(parents, letters, marks.worst(8)))
        return Ahead(after, q, parents, letters, marks.margin, failure)

    def keep(self, ahead: Ahead, kept: np.ndarray) -> None:
        """Go on with these of the words ahead."""
        self._tree.grow(ahead.parents[kept], ahead.letters[kept])
        self.states, self.q = pick(ahead.states, kept), ahead.q[kept]
        self.length += 1
