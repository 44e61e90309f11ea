"""A model's outputs as numbers, masked where they do not count."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from fsa2lrnn.automata.counting import UNCOUNTED, Positions
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import NotExact
from fsa2lrnn.extraction.runner import Runner, States, pick
from fsa2lrnn.lrnn.network import Network


class MaskedModel:
    """A model with a mask of the positions at which its outputs count."""

    def __init__(self, model: Network, mask: Positions, deadline: Deadline = NEVER) -> None:
        self.model, self.mask, self.runner, self._deadline = model, mask, Runner(model), deadline
        self.letters = 0  # model steps taken

    def read(self, states: States, q: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Return the output numbers int64 (N, T) along words (N, T) from N states in mask states q (N,)."""
        path = self.mask.path(tokens, q)
        relevant = np.flatnonzero(self.mask.counts[path].any(1))
        numbers = np.full(tokens.shape, UNCOUNTED)
        if len(relevant):
            logits, _ = self.runner.read(pick(states, relevant), tokens[relevant])
            numbers[relevant] = self.numbers(logits, path[relevant])
            self.letters += tokens[relevant].size
        return numbers

    def words(self, tokens: np.ndarray) -> np.ndarray:
        """Return the output numbers along words from the start: int64 (N, T) -> (N, T)."""
        return self.read(self.runner.start(len(tokens)), np.full(len(tokens), self.mask.start), tokens)

    def numbers(self, logits: Tensor, q: np.ndarray) -> np.ndarray:
        """Return the argmax of logits (…, |Γ|) in mask states (…,), `UNCOUNTED` where the output does not count.

        Raises `NotExact` if logits that count are NaN, and `OutOfTime` at the deadline.
        """
        self._deadline.check("extracting the automaton")
        counts = self.mask.counts[q]
        if (logits.isnan().any(-1).cpu().numpy() & counts).any():
            raise NotExact("logits that count are NaN, so no output can be read: the model has overflowed")
        return np.where(counts, logits.argmax(-1).cpu().numpy(), UNCOUNTED)
