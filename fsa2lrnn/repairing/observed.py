"""Observations of a model up to its mistakes: its states along words, with the machine's states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata.table_kernels import settled
from fsa2lrnn.errors import NotExact
from fsa2lrnn.nn.switched import SwitchedAffine
from fsa2lrnn.verification.extraction import output_numbers
from fsa2lrnn.verification.specification import Specification


@dataclass(frozen=True, eq=False)
class RepairStates(Specification):
    """A specification with a separate initial state that no letter reaches, since x₀ is a separate vector.

    The last state is the initial one, and its output does not count.

    `numbers`: int64 (n + 1,), the numbers of the states in the minimal machine.
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
        # New numbers of the states; the initial one gets none, because no letter leads to it in the new table.
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
        """The table δ, restricted to the states that letters reach: (|Σ|, n)."""
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


_EACH, _LETTERS = 400, 40


@dataclass(frozen=True, eq=False)
class BlockObservations:
    """Observed states of one block, with the machine's states.

    Args:
        x: float64 (N, b), the block's states.
        state: int64 (N,), the machine's states.
        weights: (N,), of sum 1, with equal total weight for each machine state.
    """

    x: np.ndarray
    state: np.ndarray
    weights: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """The mean of x: (b,)."""
        return self.weights @ self.x

    def solve(self, columns: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the weighted least-squares solution (k, m) of columns (N, k) @ result ≈ targets (N, m)."""
        root = np.sqrt(self.weights)[:, None]
        return np.linalg.lstsq(columns * root, targets * root, rcond=1e-9)[0]


@dataclass(frozen=True, eq=False)
class StateObservations:
    """Observed states of all blocks after letters, up to the model's first mistake in each word.

    Args:
        x: float64 (N, H, b).
        state: int64 (N,), the machine's states.
        weights: (N,), of sum 1, with equal total weight for each machine state.
    """

    x: np.ndarray
    state: np.ndarray
    weights: np.ndarray

    def head(self, h: int) -> BlockObservations:
        """Return the observations of one block."""
        return BlockObservations(self.x[:, h], self.state, self.weights)


def observe(tables: SwitchedAffine, states: RepairStates, seed: int = 0) -> StateObservations:
    """Run a model in float64 along words to all states and return its states before the first mistake in each word.

    A third of the words have uniformly random letters, a third avoid settled states, and a third begin with a shortest
    word to one of the states in turn, so that states that few words reach are observed as well. Raises `NotExact`,
    naming a state, if no word reaches it without a mistake before it.
    """
    tokens = _words(states, np.random.default_rng(seed))
    x = tables.run(torch.from_numpy(tokens))
    q = states.path(tokens)
    # A position counts only if all positions up to it are right.
    right = np.logical_and.accumulate(is_right(tables, states, x, q), axis=1)
    state = q[right]
    met = times_met(states, state)
    return StateObservations(x.numpy()[right], state, 1 / (met[state] * len(met)))


def times_met(states: RepairStates, met: np.ndarray) -> np.ndarray:
    """Return how often each state that letters reach occurs in `met`; raise `NotExact` if one is missing."""
    times = np.bincount(met, minlength=states.initial)
    if len(missing := np.flatnonzero(times == 0)):
        raise NotExact(
            f"the model is wrong before it reaches {len(missing)} of the {states.initial} states, state "
            f"{states.numbers[missing[0]]} of the minimal machine for one: there is nothing to repair from, "
            "train it first"
        )
    return times


def is_right(tables: SwitchedAffine, states: RepairStates, x: Tensor, q: np.ndarray) -> np.ndarray:
    """Return where outputs are right or do not count: x (B, T, H, b) and q (B, T) -> bool (B, T)."""
    with torch.no_grad():
        return ~states.is_wrong(output_numbers(tables.logits(x)), q)


def _words(states: RepairStates, rng: np.random.Generator) -> np.ndarray:
    uniform = states.draw(rng, 2 * _EACH, _LETTERS)
    access = states.access_words()
    for i in range(_EACH):
        word = access[i % len(access)][:_LETTERS]
        uniform[i, : len(word)] = word
    return np.concatenate([uniform, states.draw(rng, _EACH, _LETTERS, is_live=True)])
