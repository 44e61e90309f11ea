"""The target automaton of a check, and the nodes of a tube: machine states with the last letters read."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class CountedAutomaton:
    """An automaton with the states whose outputs count, for a model of `n_outputs` outputs.

    Args:
        delta: int64 (|Σ|, n).
        start: the state before the first letter.
        expected: int64 (n,), the number of each state's output; `n_outputs` or more for one that the model lacks.
        counts: bool (n,), whether the output of each state counts.
    """

    delta: np.ndarray
    start: int
    expected: np.ndarray
    counts: np.ndarray
    n_outputs: int

    @property
    def answerable(self) -> np.ndarray:
        """The states whose output counts and is one that the model has: bool (n,)."""
        return self.counts & (self.expected < self.n_outputs)

    @cached_property
    def coaccessible(self) -> np.ndarray:
        """The states from which some word, possibly empty, leads to an output that counts: bool (n,)."""
        # `order` lists the transitions, letter · n + source, by target; `first[q]` is where those into q begin.
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

    Words of letters are numbers in base |Σ|, the oldest letter first. The pairs are in order of state, then of letters;
    only those are included that words reach and from which a position that counts can be reached.

    Args:
        memory: m.
        state: int64 (F,), the machine state of each f.
        delta: int64 (|Σ|, F), the f after a letter, −1 where no position that follows counts.
        oldest: int64 (F,), the first of the r letters of f, which the next step drops.
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
        """The number of letters, |Σ|."""
        return len(self.delta)

    def numbers(self, state: np.ndarray, letters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (f, j) of words that end in these states with these last m letters; f = −1 outside the nodes."""
        base = self.n_letters**self.memory // self.older  # |Σ|^r
        return _place(self.codes, state * base + letters % base), letters // base


def nodes(target: CountedAutomaton, memory: int, frame_memory: int) -> Nodes:
    """Return the nodes of a machine by breadth-first search, in linear time even for a long chain of states."""
    n_letters = len(target.delta)
    base = n_letters**frame_memory
    letter, coaccessible = np.arange(n_letters)[:, None], target.coaccessible

    def after(codes: np.ndarray) -> np.ndarray:
        return target.delta[:, codes // base] * base + (codes % base * n_letters + letter) % base

    # All words of r letters, as (state, number): later letters only shift the number.
    states, words = np.array([target.start]), np.array([0])
    for _ in range(frame_memory):
        states = target.delta[:, states].T.reshape(-1)
        words = (words[:, None] * n_letters + letter.T).reshape(-1)
    is_reached = np.zeros(target.delta.shape[1] * base, np.bool_)
    frontier = states * base + words
    while len(frontier):
        frontier = np.unique(frontier)
        # Each code is expanded once, so the search is linear in the number of codes.
        frontier = frontier[coaccessible[frontier // base] & ~is_reached[frontier]]
        is_reached[frontier] = True
        frontier = after(frontier).reshape(-1)
    codes = np.flatnonzero(is_reached)
    delta = _place(codes, after(codes))
    oldest = codes % base // (base // n_letters)
    return Nodes(memory, codes // base, delta, oldest, n_letters ** (memory - frame_memory), codes)


def _place(codes: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Return the index of each code among ascending codes, −1 for a code that is not among them."""
    if not len(codes):
        return np.full_like(code, -1)
    place = np.searchsorted(codes[:-1], code)  # the last index for a code above all
    return np.where(codes[place] == code, place, -1)
