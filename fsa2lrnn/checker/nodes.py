"""What a model should put out, and which sets there are: a node is a machine state with the last letters read."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class CountedAutomaton:
    """An automaton, and which of its outputs count, for a model of `n_outputs` outputs.

    Args:
        delta: int64 (|Σ|, n).
        start: the state before the first letter.
        expected: int64 (n,), the number of each state's output; `n_outputs` or more for one that the model lacks.
        counts: bool (n,), whether it counts.
    """

    delta: np.ndarray
    start: int
    expected: np.ndarray
    counts: np.ndarray
    n_outputs: int

    @property
    def answerable(self) -> np.ndarray:
        """The states whose output counts and is one that the model has."""
        return self.counts & (self.expected < self.n_outputs)

    @cached_property
    def coaccessible(self) -> np.ndarray:
        """The states from which some word, if only the empty one, leads to an output that counts: bool (n,)."""
        order, n = np.argsort(self.delta, axis=None, kind="stable"), self.delta.shape[1]
        first = np.searchsorted(self.delta.reshape(-1)[order], np.arange(n + 1))
        reached, waiting = self.counts.copy(), np.flatnonzero(self.counts).tolist()
        while waiting:
            q = waiting.pop()
            for p in (order[first[q] : first[q + 1]] % n).tolist():
                if not reached[p]:
                    reached[p] = True
                    waiting.append(p)
        return reached


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes (f, j): f numbers pairs (machine state, last r letters), 1 ≤ r, and j the m − r letters before those.

    Letters make numbers in base |Σ|, the oldest first. The pairs are in order of state, then of letters; only those
    that words reach and from which a position that counts can be reached are among them.

    Args:
        memory: m.
        state: int64 (F,), the machine state of each f.
        delta: int64 (|Σ|, F), the f after a letter, −1 where nothing that follows counts.
        oldest: int64 (F,), the first of the r letters of f, which is forgotten with the next.
        older: J = |Σ|^(m−r).
        codes: int64 (F,), state · |Σ|^r + letters, ascending.
    """

    memory: int
    state: np.ndarray
    delta: np.ndarray
    oldest: np.ndarray
    older: int
    codes: np.ndarray

    @property
    def n_letters(self) -> int:
        """|Σ|."""
        return len(self.delta)

    def numbers(self, state: np.ndarray, letters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(f, j) of words that end in these states with these last m letters; f = −1 where nothing counts."""
        base = self.n_letters**self.memory // self.older  # |Σ|^r
        code = state * base + letters % base
        if not len(self.codes):
            return np.full_like(code, -1), letters // base
        f = np.asarray(np.searchsorted(self.codes[:-1], code), np.int64)  # the last one too where code is above all
        return np.where(self.codes[f] == code, f, -1), letters // base


def nodes(target: CountedAutomaton, memory: int, frame_memory: int) -> Nodes:
    """The nodes for a machine, breadth first: so a long chain of states takes linear time."""
    n_letters = len(target.delta)
    base = n_letters**frame_memory
    letter, coaccessible = np.arange(n_letters)[:, None], target.coaccessible

    def after(codes: np.ndarray) -> np.ndarray:
        return target.delta[:, codes // base] * base + (codes % base * n_letters + letter) % base

    states, words = np.array([target.start]), np.array([0])
    for _ in range(frame_memory):
        states = target.delta[:, states].T.reshape(-1)
        words = (words[:, None] * n_letters + letter.T).reshape(-1)
    # Codes that were reached are marked, so that a machine that is a long chain takes linear time.
    is_reached = np.zeros(target.delta.shape[1] * base, np.bool_)
    frontier = _kept(states * base + words, base, coaccessible)
    while len(frontier):
        is_reached[frontier] = True
        frontier = _kept(after(frontier), base, coaccessible)
        frontier = frontier[~is_reached[frontier]]
    seen = np.flatnonzero(is_reached)
    to = after(seen)
    place = np.searchsorted(seen[:-1], to)
    delta = np.where(seen[place] == to, place, -1) if len(seen) else to
    oldest = seen % base // (base // n_letters)
    return Nodes(memory, seen // base, delta, oldest, n_letters ** (memory - frame_memory), seen)


def _kept(codes: np.ndarray, base: int, coaccessible: np.ndarray) -> np.ndarray:
    found = np.unique(codes)
    return found[coaccessible[found // base]]
