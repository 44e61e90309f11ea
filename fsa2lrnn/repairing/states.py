"""The states that a model's states stand for: those that a letter leads to, and the initial one apart from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.extraction import paths
from fsa2lrnn.judge.goal import DOES_NOT_COUNT, Target


@dataclass(frozen=True, eq=False)
class States:
    """A machine whose initial state no letter leads to: x₀ is a vector of its own, whatever state it stands for.

    Args:
        delta: int64 (|Σ|, n + 1), the last column the initial state's.
        wanted: int64 (n + 1,), the number of each state's output, or `DOES_NOT_COUNT`, as of the initial state.
        numbers: int64 (n + 1,), the states by their numbers in the minimal machine.
    """

    delta: np.ndarray
    wanted: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, goal: Target) -> States:
        """The states of a target.

        >>> goal = Target(np.array([[0, 1], [1, 0]]), np.array([0, 1]), 0, ())
        >>> States.of(goal).delta.tolist(), States.of(goal).numbers.tolist()
        ([[0, 1, 0], [1, 0, 1]], [0, 1, 0])
        """
        entered = np.unique(goal.delta)  # every state of a minimal machine is reachable
        numbers = np.append(entered, goal.start)
        place = np.full(goal.delta.shape[1], -1)
        place[entered] = np.arange(len(entered))
        return cls(place[goal.delta[:, numbers]], np.append(goal.wanted[entered], DOES_NOT_COUNT), numbers)

    @property
    def initial(self) -> int:
        """The number of the initial state, which is also that of the states that letters lead to."""
        return self.delta.shape[1] - 1

    @property
    def entered(self) -> np.ndarray:
        """δ on the states that letters lead to: (|Σ|, n)."""
        return self.delta[:, :-1]

    def run(self, tokens: np.ndarray) -> np.ndarray:
        """The states after every letter: int64 (B, T) -> (B, T)."""
        return paths(self.delta, np.full(len(tokens), self.initial), tokens)

    def draw(self, rng: np.random.Generator, size: int, length: int, is_live: bool = False) -> np.ndarray:
        """Words of uniformly random letters, int64 (B, T); if live, of letters that do not lead into a settled state,
        where there are others.

        From a settled state every word gives the same output, as from the sink of a language that is missed for good.
        """
        allowed = np.ones_like(self.delta, dtype=bool)
        if is_live:
            alive = ~self._settled()[self.delta]
            allowed = alive | ~alive.any(0)
        tokens = np.empty((size, length), np.int64)
        q = np.full(size, self.initial)
        for k in range(length):
            scores = rng.random((len(self.delta), size)) * allowed[:, q]
            tokens[:, k] = scores.argmax(0)
            q = self.delta[tokens[:, k], q]
        return tokens

    def _settled(self) -> np.ndarray:
        settled = (self.wanted[self.delta] == self.wanted).all(0)
        while (smaller := settled & settled[self.delta].all(0)).sum() < settled.sum():
            settled = smaller
        return settled

    def access_words(self) -> list[list[int]]:
        """A shortest non-empty word to each state but the initial, as letter numbers."""
        words: dict[int, list[int]] = {self.initial: []}
        waiting = [self.initial]
        for q in waiting:
            for a, target in enumerate(self.delta[:, q].tolist()):
                if target not in words:
                    words[target] = [*words[q], a]
                    waiting.append(target)
        return [words[q] for q in range(self.initial)]
