"""Batched execution of a model on many words, for searches and extraction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata.counting import UNCOUNTED, Positions
from fsa2lrnn.deadline import NEVER, Deadline, present
from fsa2lrnn.errors import NotExact
from fsa2lrnn.nn.layer_checks import check_layers
from fsa2lrnn.nn.model import LayerState
from fsa2lrnn.nn.network import Network
from fsa2lrnn.nn.scans import scan_tokens
from fsa2lrnn.nn.switched import SwitchedAffine, switched
from fsa2lrnn.verification.extraction.breadth_first import to_bytes
from fsa2lrnn.verification.modelled import check_causal

States = tuple[Tensor, ...]  # each (N, …): the recurrent state of a model after N words

_ENTRIES = 1 << 22  # the most numbers that one batch materialises


class Runner:
    """A stepper of a model's states, in its own dtype and on its own device.

    One layer over letters is stepped by its tables, every other model by `advance`. Tables reproduce the scans up to
    the order of summation, so results have to be confirmed with the model itself. Raises `UnsupportedFormat` for a
    model that is not causal, and `FalseDeclaration` for a user-defined layer that contradicts its declarations.
    """

    def __init__(self, model: Network) -> None:
        check_causal(model)
        self.model = model
        self.n_letters = len(model.alphabet)
        self._tables: SwitchedAffine | None = switched(model) if model.is_switched else None
        if self._tables is None:
            check_layers(model)
        layers = model.initial_state()
        self._is_shifted = [layer.u is not None for layer in layers]
        self._start = tuple(part.detach() for layer in layers for part in layer if part is not None)
        if self._tables is not None:
            self._start = (self._tables.x0[None],)
        per_letter = model.entries_per_token if self._tables is None else self._tables.x0.numel() * 4
        self.batch = max(1, _ENTRIES // per_letter)  # letters read at once

    @property
    def tables(self) -> SwitchedAffine | None:
        """The tables of a model of one layer over letters, else None."""
        return self._tables

    def start(self, n: int = 1) -> States:
        """Return n copies of the initial state, each tensor (n, …)."""
        return tuple(part.expand(n, *part.shape[1:]) for part in self._start)

    @torch.no_grad()
    def read(self, states: States, tokens: np.ndarray) -> tuple[Tensor, States]:
        """Return logits along words from N states, and the final states: int64 (N, T) -> (N, T, |Γ|)."""
        parts = [self._read(pick(states, slice(i, i + size)), tokens[i : i + size]) for i, size in self._pieces(tokens)]
        return torch.cat([logits for logits, _ in parts]), join([after for _, after in parts])

    @torch.no_grad()
    def fan(self, states: States, live: np.ndarray) -> tuple[Tensor, States]:
        """Return logits and states after M live letters: N states, bool (N, |Σ|) -> (M, |Γ|), M states.

        The letters after one state are adjacent, in order.
        """
        places = np.flatnonzero(live)
        if self._tables is None or not len(places):
            before, letters = places // self.n_letters, places % self.n_letters
            logits, after = self.read(pick(states, before), letters[:, None])
            return logits[:, 0], after
        every = [self._tables.step(piece) for piece in states[0].split(max(1, self.batch // self.n_letters))]
        x = pick((torch.cat(every).flatten(0, 1),), places)
        return self._tables.logits(x[0]), x

    def pick(self, states: States, places: np.ndarray) -> States:
        """Return the states at these indices."""
        return pick(states, places)

    def rows(self, states: States) -> np.ndarray:
        """Return the bytes of each state's numbers: uint8 (N, D)."""
        return to_bytes(states)

    def _read(self, states: States, tokens: np.ndarray) -> tuple[Tensor, States]:
        present.at("running the model on words")
        letters = torch.from_numpy(np.ascontiguousarray(tokens)).to(states[0].device)
        if self._tables is not None:
            x = scan_tokens(letters, self._tables.A, self._tables.v, states[0].contiguous())
            return self._tables.logits(x), (x[:, -1],)
        rest = iter(states)
        carried = tuple(LayerState(next(rest), next(rest) if shifted else None) for shifted in self._is_shifted)
        logits, after = self.model.advance(letters, carried)
        return logits, tuple(part for layer in after for part in layer if part is not None)

    def _pieces(self, tokens: np.ndarray) -> Iterator[tuple[int, int]]:
        n, length = tokens.shape
        size = max(1, self.batch // max(1, length))
        return ((i, size) for i in range(0, max(n, 1), size))


def pick(states: States, index: Tensor | np.ndarray | slice) -> States:
    """Return the states at these indices."""
    if isinstance(index, np.ndarray):
        index = torch.from_numpy(index).to(states[0].device)
    return tuple(part[index] for part in states)


def join(parts: list[States]) -> States:
    """Return the states of several batches as one batch."""
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))


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
