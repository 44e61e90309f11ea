"""What a model puts out, as numbers, where it counts."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from fsa2lrnn.automata.counting import UNCOUNTED, Positions
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import NotExact
from fsa2lrnn.extraction.runner import Runner, States, pick
from fsa2lrnn.lrnn.network import Network


class MaskedModel:
    """A model and the mask under which its outputs count."""

    def __init__(self, model: Network, mask: Positions, deadline: Deadline = NEVER) -> None:
        self.model, self.mask, self.runner, self._deadline = model, mask, Runner(model), deadline
        self.letters = 0  # model steps taken

    def read(self, states: States, q: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The output numbers along words (N, T) from N states in mask states q (N,): int64 (N, T)."""
        path = self.mask.path(tokens, q)
        asked = np.flatnonzero(self.mask.counts[path].any(1))
        numbers = np.full(tokens.shape, UNCOUNTED)
        if len(asked):
            logits, _ = self.runner.read(pick(states, asked), tokens[asked])
            numbers[asked] = self.numbers(logits, path[asked])
            self.letters += tokens[asked].size
        return numbers

    def words(self, tokens: np.ndarray) -> np.ndarray:
        """The output numbers along words from the start: int64 (N, T) -> (N, T)."""
        return self.read(self.runner.start(len(tokens)), np.full(len(tokens), self.mask.start), tokens)

    def numbers(self, logits: Tensor, q: np.ndarray) -> np.ndarray:
        """The numbers of the largest logits (…, |Γ|) in mask states (…,), `UNCOUNTED` where they do not count.

        Raises `NotExact` where logits that count are not numbers, and `OutOfTime` at the deadline.
        """
        self._deadline.check("extracting the automaton")
        counts = self.mask.counts[q]
        if (logits.isnan().any(-1).cpu().numpy() & counts).any():
            raise NotExact("logits that count are NaN, so no output can be read: the model has overflowed")
        return np.where(counts, logits.argmax(-1).cpu().numpy(), UNCOUNTED)
