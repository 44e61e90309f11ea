"""Which sets there are: a node is a machine state with the last letters that led to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.judge.goal import Goal


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


def nodes(goal: Goal, memory: int, frame_memory: int) -> Nodes:
    """The nodes for a machine.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> from fsa2lrnn.judge.goal import goal_for
    >>> found = nodes(goal_for(compile_machine(zoo.parity()), zoo.parity()), 2, 1)
    >>> found.state.tolist(), found.delta.tolist(), found.older
    ([0, 0, 1, 1], [[0, 0, 2, 2], [3, 3, 1, 1]], 2)
    """
    n_letters = len(goal.delta)
    base = n_letters**frame_memory
    letter, hopeful = np.arange(n_letters)[:, None], goal.hopeful

    def after(codes: np.ndarray) -> np.ndarray:
        return goal.delta[:, codes // base] * base + (codes % base * n_letters + letter) % base

    states, words = np.array([goal.start]), np.array([0])
    for _ in range(frame_memory):
        states = goal.delta[:, states].T.reshape(-1)
        words = (words[:, None] * n_letters + letter.T).reshape(-1)
    # Codes that were reached are marked, so that a machine that is a long chain takes linear time.
    is_reached = np.zeros(goal.delta.shape[1] * base, np.bool_)
    frontier = _kept(states * base + words, base, hopeful)
    while len(frontier):
        is_reached[frontier] = True
        frontier = _kept(after(frontier), base, hopeful)
        frontier = frontier[~is_reached[frontier]]
    seen = np.flatnonzero(is_reached)
    to = after(seen)
    place = np.searchsorted(seen[:-1], to)
    delta = np.where(seen[place] == to, place, -1) if len(seen) else to
    oldest = seen % base // (base // n_letters)
    return Nodes(memory, seen // base, delta, oldest, n_letters ** (memory - frame_memory), seen)


def _kept(codes: np.ndarray, base: int, hopeful: np.ndarray) -> np.ndarray:
    found = np.unique(codes)
    return found[hopeful[found // base]]
