"""The states that a model's states stand for: those that a letter leads to, and the initial one apart from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.reach import settled
from fsa2lrnn.verification.goal import Specification


@dataclass(frozen=True, eq=False)
class RepairStates(Specification):
    """A goal whose initial state no letter leads to: x₀ is a vector of its own, whatever state it stands for.

    The last state is the initial one, and its output does not count.

    Args:
        numbers: int64 (n + 1,), the states by their numbers in the minimal machine.
    """

    numbers: np.ndarray

    @classmethod
    def of(cls, goal: Specification) -> RepairStates:
        """The states of a goal.

        >>> from fsa2lrnn import compile_machine, zoo
        >>> from fsa2lrnn.verification.goal import specification_of
        >>> states = RepairStates.of(specification_of(compile_machine(zoo.parity()), zoo.parity()))
        >>> states.delta.tolist(), states.numbers.tolist()
        ([[0, 1, 0], [1, 0, 1]], [0, 1, 0])
        """
        entered = np.unique(goal.delta)  # every state of a minimal machine is reachable
        numbers = np.append(entered, goal.start)
        place = np.full(goal.delta.shape[1], -1)
        place[entered] = np.arange(len(entered))
        counts = np.append(goal.counts[entered], False)
        delta = place[goal.delta[:, numbers]]
        return cls(
            delta, counts, len(entered), goal.wanted[numbers], goal.alphabet, goal.outputs, goal.known, False, numbers
        )

    @property
    def initial(self) -> int:
        """The number of the initial state, which is also that of the states that letters lead to."""
        return self.start

    @property
    def entered(self) -> np.ndarray:
        """δ on the states that letters lead to: (|Σ|, n)."""
        return self.delta[:, :-1]

    def draw(self, rng: np.random.Generator, size: int, length: int, is_live: bool = False) -> np.ndarray:
        """Words of uniformly random letters, int64 (B, T); if live, of letters that do not lead into a settled state,
        where there are others.

        From a settled state every word gives the same output, as from the sink of a language that is missed for good.
        """
        allowed = ~settled(self.delta, self.labels)[self.delta] if is_live else np.ones_like(self.delta, dtype=bool)
        return self.random_words(rng, size, length, allowed)

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
