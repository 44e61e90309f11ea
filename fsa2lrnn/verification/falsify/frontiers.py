"""Searches that extend frontiers of words letter by letter: of all words, shortest first, or of a beam.

The beam keeps, for each machine state, a few states with the least margins or the largest deviations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import counted
from fsa2lrnn.verification.extraction.breadth_first import FrontierSuccessors
from fsa2lrnn.verification.extraction.runner import States
from fsa2lrnn.verification.falsify.model_comparison import Budget, Failure, ModelComparison, SearchOutcome
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
        # A counterexample of `below` letters is known already, so only shorter words are of interest.
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


_MOST = 20_000  # the most states that a beam keeps in all, for any number of machine states
_LARGEST = 1e100  # replaces infinity, so that means and products of states stay finite
_DIRECTIONS = 4
_ROUNDS = 2  # of the power iteration, warm from the last letter's directions


def beam(comparison: ModelComparison, budget: Budget, below: int, clock: Deadline, wider: int = 1) -> SearchOutcome:
    """Search words of fewer than `below` letters by a beam that keeps a few states for each machine state.

    Half of the states kept have the least margins. The others are the extremes along the few directions in which the
    states of one machine state differ most: the errors of trained models accumulate slowly, and are visible in these
    directions long before they reduce a margin.
    """
    n_states = int(comparison.goal.coaccessible.sum())
    width = width_for(comparison, budget.width * wider)
    growth = grow(comparison, Chooser(width), min(budget.length, below - 1), clock)
    what = f"beam of {width} states for each of {n_states} machine states"
    return SearchOutcome(growth.failure, what, growth.length, growth.words, growth.letters, growth.finished)


def width_for(comparison: ModelComparison, width: int) -> int:
    """Return the number of states that a beam keeps for each machine state: at least 2, else at most `width`."""
    return max(2, min(width, _MOST // int(comparison.goal.coaccessible.sum())))


class GrowthResult(NamedTuple):
    """The result of `grow`: a failure or None, the length reached, the words of that length, and the letters read."""

    failure: Failure | None
    length: int
    words: int
    letters: int
    finished: bool = True


def grow(comparison: ModelComparison, chooser: Chooser, longest: int, clock: Deadline) -> GrowthResult:
    """Extend words letter by letter, keeping those that the chooser selects, until a failure or a limit."""
    words, debt = Frontier(comparison), np.array([np.inf])
    while words.length < longest and len(words):
        if clock.left() <= 0:
            return GrowthResult(None, words.length, len(words), words.letters, finished=False)
        scored = words.scored()
        if scored.failure is not None:
            return GrowthResult(scored.failure, words.length, len(words), words.letters)
        # Where no output counts, a word keeps the margin of its parent.
        margin = np.where(scored.margin == np.inf, debt[scored.ahead.parents], scored.margin)
        chosen = chooser.choose(words.length + 1, scored.ahead.states, scored.q, margin)
        words.keep(scored.ahead, scored.q, chosen)
        debt = margin[chosen]
    return GrowthResult(None, words.length, len(words), words.letters)


class Chooser:
    """A rule that picks `width` states for each machine state, by margin and by direction."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._directions: dict[int, np.ndarray] = {}
        self._rng = np.random.default_rng(0)

    def choose(self, length: int, states: States, q: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """Return the sorted indices of the picked states among N, with machine states q (N,) and margins (N,)."""
        x = as_vectors(states)
        order = np.lexsort((margin, q))  # by machine state, then by margin
        groups = np.split(order, np.flatnonzero(np.diff(q[order])) + 1) if len(q) else []
        chosen = [group[self._choose(length, int(q[group[0]]), x[group])] for group in groups]
        return np.sort(np.concatenate([np.empty(0, np.int64), *chosen]))

    def pick(self, length: int, q: int, x: np.ndarray) -> np.ndarray:  # noqa: ARG002 (a guided one needs the length)
        """Return the indices picked among more than `width` different states (N, d), sorted by margin."""
        along = x @ self._update(q, x - x.mean(0))
        # Half of the width goes to the least margins, the other half to both ends of each direction.
        each = max(1, self.width // (4 * _DIRECTIONS))
        ranked = along.argsort(axis=0, kind="stable")
        return np.unique(np.concatenate([np.arange(self.width // 2), ranked[:each].ravel(), ranked[-each:].ravel()]))

    def _choose(self, length: int, q: int, x: np.ndarray) -> np.ndarray:
        # Letters with the same effect give the same vector: one suffices. A sum with irrational weights finds them.
        _, first = np.unique(x @ np.sqrt(np.arange(2.0, 2 + x.shape[1])), return_index=True)
        first = np.sort(first)
        if len(first) <= self.width:
            return first
        return first[self.pick(length, q, x[first])] if x.shape[1] else first[: self.width]

    def _update(self, q: int, deviations: np.ndarray) -> np.ndarray:
        """Return the principal directions of deviations (N, d), orthonormal (d, directions), by power iteration."""
        d = deviations.shape[1]
        scale = np.abs(deviations).max()
        if q not in self._directions:
            self._directions[q] = self._rng.standard_normal((d, min(d, _DIRECTIONS)))
        if scale == 0:
            return self._directions[q]
        unit = deviations / scale
        for _ in range(_ROUNDS):
            # One step of subspace iteration with the covariance; the small multiple keeps the rank where deviations
            # span less.
            directions, _ = np.linalg.qr(unit.T @ (unit @ self._directions[q]) + 1e-12 * self._directions[q])
            self._directions[q] = directions
        return self._directions[q]


def as_vectors(states: States) -> np.ndarray:
    """Return the floating-point entries of each state as a finite float64 array (N, d); indices are left out."""
    parts = [part.detach().flatten(1).double().cpu().numpy() for part in states if part.is_floating_point()]
    # Systems without floating-point states, such as index tables, get vectors of dimension 0.
    x = np.concatenate(parts, axis=1) if parts else np.empty((len(states[0]), 0))
    return np.clip(np.nan_to_num(x), -_LARGEST, _LARGEST)
