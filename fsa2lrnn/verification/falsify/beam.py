"""The states that are closest to failing or furthest from where they should be, a few for each state of the machine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.extraction.runner import States
from fsa2lrnn.verification.falsify.frontier import Frontier
from fsa2lrnn.verification.falsify.judge import ModelComparison
from fsa2lrnn.verification.falsify.verdict import Budget, Failure, SearchOutcome

_MOST = 20_000  # states that a beam keeps in all, whatever the number of machine states
_LARGEST = 1e100  # in place of infinity, so that means and products of states stay numbers
_DIRECTIONS = 4
_ROUNDS = 2  # of the power iteration, warm from the last letter's directions


def beam(judge: ModelComparison, budget: Budget, below: int, clock: Deadline, wider: int = 1) -> SearchOutcome:
    """Words of less than `below` letters, grown letter by letter; of those in one machine state only a few are kept.

    Half of them have the least margins. The others are the extremes along the few directions in which the states that
    should act alike differ most: what a trained model gets wrong at last is what adds up slowly, and that shows there
    long before it shows in a margin.
    """
    n_states = int(judge.goal.hopeful.sum())
    width = width_for(judge, budget.width * wider)
    found = grow(judge, Chooser(width), min(budget.length, below - 1), clock)
    what = f"beam of {width} states for each of {n_states} machine states"
    return SearchOutcome(found.failure, what, found.length, found.words, found.letters, found.finished)


def width_for(judge: ModelComparison, width: int) -> int:
    """How many states a beam keeps for each machine state, of as many as are asked for."""
    return max(2, min(width, _MOST // int(judge.goal.hopeful.sum())))


class GrowthResult(NamedTuple):
    """How far words were grown: to a failure, or to how many words of which length, having read how many letters."""

    failure: Failure | None
    length: int
    words: int
    letters: int
    finished: bool = True


def grow(judge: ModelComparison, chooser: Chooser, longest: int, clock: Deadline) -> GrowthResult:
    """Words letter by letter, of which the chooser says which go on, up to the first failure."""
    words, debt = Frontier(judge), np.array([np.inf])
    while words.length < longest and len(words):
        if clock.left() <= 0:
            return GrowthResult(None, words.length, len(words), words.letters, finished=False)
        found = words.judged()
        if found.failure is not None:
            return GrowthResult(found.failure, words.length, len(words), words.letters)
        # Where nothing counts, a word is as close to failing as it was before.
        margin = np.where(found.margin == np.inf, debt[found.ahead.parents], found.margin)
        kept = chooser.choose(words.length + 1, found.ahead.states, found.q, margin)
        words.keep(found.ahead, found.q, kept)
        debt = margin[kept]
    return GrowthResult(None, words.length, len(words), words.letters)


class Chooser:
    """Picks `width` states for each machine state; remembers the directions in which each machine state's differ."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._directions: dict[int, np.ndarray] = {}
        self._rng = np.random.default_rng(0)

    def choose(self, length: int, states: States, q: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """Places among N states, of words of that length, of machine states q (N,) and margins (N,), in order."""
        x = as_vectors(states)
        order = np.lexsort((margin, q))  # by machine state, then by margin
        groups = np.split(order, np.flatnonzero(np.diff(q[order])) + 1) if len(q) else []
        kept = [group[self._choose(length, int(q[group[0]]), x[group])] for group in groups]
        return np.sort(np.concatenate([np.empty(0, np.int64), *kept]))

    def pick(self, length: int, q: int, x: np.ndarray) -> np.ndarray:  # noqa: ARG002 (a guided one needs the length)
        """Places among more than `width` different states (N, d) of one machine state, in order of their margins."""
        along = x @ self._update(q, x - x.mean(0))
        each = max(1, self.width // (4 * _DIRECTIONS))
        ranked = along.argsort(axis=0, kind="stable")
        return np.unique(np.concatenate([np.arange(self.width // 2), ranked[:each].ravel(), ranked[-each:].ravel()]))

    def _choose(self, length: int, q: int, x: np.ndarray) -> np.ndarray:
        # Letters that act alike give the same vector: one of them will do. A sum with odd weights tells them apart.
        _, first = np.unique(x @ np.sqrt(np.arange(2.0, 2 + x.shape[1])), return_index=True)
        first = np.sort(first)
        if len(first) <= self.width:
            return first
        return first[self.pick(length, q, x[first])] if x.shape[1] else first[: self.width]

    def _update(self, q: int, deviations: np.ndarray) -> np.ndarray:
        """The main directions of deviations (N, d): orthonormal (d, directions), by power iteration."""
        d = deviations.shape[1]
        scale = np.abs(deviations).max()
        if q not in self._directions:
            self._directions[q] = self._rng.standard_normal((d, min(d, _DIRECTIONS)))
        if scale == 0:
            return self._directions[q]
        unit = deviations / scale
        for _ in range(_ROUNDS):
            found, _ = np.linalg.qr(unit.T @ (unit @ self._directions[q]) + 1e-12 * self._directions[q])
            self._directions[q] = found
        return self._directions[q]


def as_vectors(states: States) -> np.ndarray:
    """The numbers of each state side by side, finite: float64 (N, d); an index is no number."""
    parts = [part.detach().flatten(1).double().cpu().numpy() for part in states if part.is_floating_point()]
    x = np.concatenate(parts, axis=1) if parts else np.empty((len(states[0]), 0))
    return np.clip(np.nan_to_num(x), -_LARGEST, _LARGEST)
