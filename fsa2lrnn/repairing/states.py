"""The states of a repair: the machine states after a letter, and a separate initial state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.reach import settled
from fsa2lrnn.verification.specification import Specification


@dataclass(frozen=True, eq=False)
class RepairStates(Specification):
    """A specification with a separate initial state that no letter reaches, since x₀ is a separate vector.

    The last state is the initial one, and its output does not count.

    Args:
        numbers: int64 (n + 1,), the numbers of the states in the minimal machine.
    """

    numbers: np.ndarray

    @classmethod
    def of(cls, goal: Specification) -> RepairStates:
        """Return the states of a specification.

        >>> from fsa2lrnn import compile_machine, zoo
        >>> from fsa2lrnn.verification.specification import specification_of
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
        """The number of the initial state, equal to the number of states that letters reach."""
        return self.start

    @property
    def entered(self) -> np.ndarray:
        """δ restricted to the states that letters reach: (|Σ|, n)."""
        return self.delta[:, :-1]

    def draw(self, rng: np.random.Generator, size: int, length: int, is_live: bool = False) -> np.ndarray:
        """Return words of uniformly random letters, int64 (B, T); if live, avoiding settled states where possible.

        From a settled state, such as a rejecting sink, every word gives the same output.
        """
        allowed = ~settled(self.delta, self.labels)[self.delta] if is_live else np.ones_like(self.delta, dtype=bool)
        return self.random_words(rng, size, length, allowed)

    def access_words(self) -> list[list[int]]:
        """Return a shortest non-empty word to each state but the initial one, as letter numbers."""
        words: dict[int, list[int]] = {self.initial: []}
        waiting = [self.initial]
        for q in waiting:
            for a, target in enumerate(self.delta[:, q].tolist()):
                if target not in words:
                    words[target] = [*words[q], a]
                    waiting.append(target)
        return [words[q] for q in range(self.initial)]
