"""Observations of a model while it is right: its states along words, with the machine's states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.errors import NotExact
from fsa2lrnn.extraction import output_numbers
from fsa2lrnn.lrnn.switched import SwitchedAffine
from fsa2lrnn.repairing.states import RepairStates

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

    def solve(self, columns: np.ndarray, targets: np.ndarray, rcond: float = 1e-9) -> np.ndarray:
        """Return the weighted least-squares solution (k, m) of columns (N, k) @ result ≈ targets (N, m)."""
        root = np.sqrt(self.weights)[:, None]
        return np.linalg.lstsq(columns * root, targets * root, rcond=rcond)[0]


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
    """Run a model in float64 along words to all states and return the states before its mistakes.

    A third of the words have uniformly random letters, a third avoid settled states, and a third begin with a shortest
    word to one of the states in turn, so that states that few words reach are observed as well.

    Raises:
        NotExact: naming the states that no word reaches without a mistake before it.
    """
    tokens = _words(states, np.random.default_rng(seed))
    x = tables.run(torch.from_numpy(tokens))
    q = states.path(tokens)
    right = np.logical_and.accumulate(is_right(tables, states, x, q), axis=1)
    met = np.bincount(q[right], minlength=states.initial)
    if len(missing := np.flatnonzero(met == 0)):
        raise NotExact(
            f"the model is wrong before it reaches {len(missing)} of the {states.initial} states, state "
            f"{states.numbers[missing[0]]} of the minimal machine for one: there is nothing to repair from, "
            "train it first"
        )
    state = q[right]
    return StateObservations(x.numpy()[right], state, 1 / (met[state] * len(met)))


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
