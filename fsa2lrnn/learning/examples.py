"""Sources of training words with outputs: a machine, which labels any word, or a user's fixed set of words.

A batch holds tokens, int64 (B, T), and labels, int64 (B, T+1): the empty word's first. `UNCOUNTED` does not count.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.table_kernels import paths
from fsa2lrnn.compile.heads import Heads
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.learning.judging import is_restricted
from fsa2lrnn.learning.recipe import check_noise
from fsa2lrnn.training.data import Batch, Sampler, TaskWords, Walks, make_sampler, words

_OF_FAILURES = 8  # one word in eight begins with a counterexample
_AT_ONCE = 4  # counterexamples per batch


class Examples(Protocol):
    """The source of the training words of a start."""

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def fit(self, length: int) -> int:
        """Return the largest possible word length up to `length`, or the least possible one."""
        ...

    def batch(self, size: int, length: int, generator: torch.Generator) -> Batch:
        """Return `size` words of `length` letters, or shorter ones padded with uncounted positions."""
        ...

    def evaluation_words(self, length: int, generator: torch.Generator) -> Batch:
        """Return the words with which a candidate must agree before it is verified."""
        ...

    def many(self, length: int, generator: torch.Generator) -> Batch:
        """Return words of several lengths for the repair of a head."""
        ...


class FreshWords:
    """Fresh words of a machine, restricted to legal words if the task defines them.

    If any word is legal, three quarters of the words begin with a transition drawn uniformly: a shortest word to its
    state, and its letter. Two thirds of these then avoid letters that lead to settled states: uniform words alone would
    rarely be in the interior of (ab)* or of Dyck words, or at the end of a long path. Words that begin with a
    counterexample continue with the beginning of such a word (half of them) or its rest (the other half).

    Raises `UnsupportedFormat` if only one output occurs.
    """

    def __init__(self, machine: MooreMachine, sampler: str = "task", source: str = "", noise: float = 0.0) -> None:
        self.machine, self._noise = minimise(machine), noise
        self.sampler: Sampler = make_sampler(sampler, self.machine, source)
        self.is_restricted = is_restricted(self.sampler)
        outputs = None if self.is_restricted else tuple(dict.fromkeys(self.machine.outputs))
        self._words = words(self.machine, self.sampler, outputs)
        self.alphabet, self.outputs = self._words.alphabet, self._words.outputs
        if len(self.outputs) < 2:
            raise UnsupportedFormat(
                f"the machine has the outputs {self.outputs} and no other on these words: there is nothing to learn"
            )
        check_noise(noise, len(self.outputs))
        counts = not self.is_restricted
        self._empty = self.outputs.index(self.machine.outputs[self.machine.start]) if counts else UNCOUNTED
        self._failures: list[np.ndarray] = []

    @cached_property
    def _alive(self) -> TaskWords:
        return words(self.machine, make_sampler("live", self.machine), self.outputs)

    @cached_property
    def _cover(self) -> tuple[np.ndarray, np.ndarray]:
        return transition_cover(self.machine)

    def fit(self, length: int) -> int:
        """Return the length that `TaskWords.fit` gives for `length`, or for the sampler's period if that is longer."""
        return self._words.fit(max(length, len(self.sampler.scored)))

    def add(self, word: Sequence[Hashable]) -> None:
        """Add a counterexample, with which some of the later words begin."""
        index = {letter: i for i, letter in enumerate(self.alphabet)}
        self._failures.append(np.array([index[letter] for letter in word], np.int64))

    @property
    def failures(self) -> list[list[int]]:
        """The counterexamples that were added, as tokens."""
        return [word.tolist() for word in self._failures]

    @failures.setter
    def failures(self, counterexamples: list[list[int]]) -> None:
        self._failures = [np.array(word, np.int64) for word in counterexamples]

    def batch(self, size: int, length: int, generator: torch.Generator) -> Batch:
        """Return fresh words, some of which begin with a counterexample."""
        again = [word for word in self._failures if len(word) <= length]
        n_again = max(1, size // _OF_FAILURES) if again else 0
        parts = self._fresh(size - n_again, length, generator)
        if again:
            n_words = min(_AT_ONCE, n_again)
            drawn = torch.randint(len(again), (n_words,), generator=generator).tolist()
            drawn[0] = len(again) - 1  # always the latest
            sizes = [n_again // n_words + (i < n_again % n_words) for i in range(n_words)]
            parts += [self._beginning(again[at], n, length, generator) for at, n in zip(drawn, sizes, strict=True)]
        labels = torch.cat([part.labels for part in parts])
        empty = torch.full((len(labels), 1), self._empty)
        return Batch(torch.cat([part.tokens for part in parts]), self._wrong(torch.cat([empty, labels], 1), generator))

    def evaluation_words(self, length: int, generator: torch.Generator) -> Batch:
        """Return 256 fresh words."""
        return self.batch(256, length, generator)

    def many(self, length: int, generator: torch.Generator) -> Batch:
        """Return 512 fresh words of full length and 512 shorter ones."""
        short = self.batch(512, self.fit(max(2, length // 4)), generator)
        return padded([self.batch(512, length, generator), short])

    def labelled(self, word: Sequence[Hashable]) -> Batch:
        """Return a batch of one word with its correct outputs."""
        index = {letter: i for i, letter in enumerate(self.alphabet)}
        batch = self._labelled(torch.tensor([[index[letter] for letter in word]], dtype=torch.int64))
        return Batch(batch.tokens, torch.cat([torch.tensor([[self._empty]]), batch.labels], dim=1))

    def _fresh(self, size: int, length: int, generator: torch.Generator) -> list[Batch]:
        if self.is_restricted:
            return [self._words.batch(size, length, generator)]
        n_alive, n_any = size // 2, size // 4
        return [
            self._words.batch(size - n_alive - n_any, length, generator),
            self._covering(self._alive, n_alive, length, generator),
            self._covering(self._words, n_any, length, generator),
        ]

    def _covering(self, words: TaskWords, size: int, length: int, generator: torch.Generator) -> Batch:
        """Return words that begin with transitions drawn uniformly from those that `length` letters can reach."""
        cover, lengths = self._cover
        rows = np.flatnonzero(lengths <= length)
        rows = rows[torch.randint(len(rows), (size,), generator=generator).numpy()]
        cover, lengths = cover[rows, :length], torch.from_numpy(lengths[rows])[:, None]
        states = torch.from_numpy(paths(self.machine.delta, np.full(size, self.machine.start), cover))
        begun = Walks(states.gather(1, lengths - 1)[:, 0], 0)
        rest = words.advance(begun, length, generator)[0].tokens
        first = pad(torch.from_numpy(cover), (0, length - cover.shape[1]))
        place = torch.arange(length)
        return self._labelled(torch.where(place < lengths, first, rest.gather(1, (place - lengths).clamp(min=0))))

    def _beginning(self, word: np.ndarray, size: int, length: int, generator: torch.Generator) -> Batch:
        if self.is_restricted:
            walks = Walks(torch.full((size,), int(self._state_after(word))), len(word))
            rest = self._words.advance(walks, length - len(word), generator)[0]
            return self._labelled(torch.cat([torch.from_numpy(word).expand(size, -1), rest.tokens], dim=1))
        tokens = self._alive.batch(size, length, generator).tokens
        tokens[::2, len(word) :] = tokens[::2, : length - len(word)].clone()
        tokens[:, : len(word)] = torch.from_numpy(word)
        return self._labelled(tokens)

    def _state_after(self, word: np.ndarray) -> int:
        q = self.machine.start
        for a in word:
            q = self.machine.delta[a, q]
        return q

    def _labelled(self, tokens: Tensor) -> Batch:
        walk = Heads(self.machine.delta[:, None, :], np.array([self.machine.start]))
        states = torch.from_numpy(walk.states(tokens.numpy())[:, 1:, 0])
        phase = torch.arange(tokens.shape[1]) % len(self.sampler.scored)
        return Batch(tokens, self._words.labels[phase, states])

    def _wrong(self, labels: Tensor, generator: torch.Generator) -> Tensor:
        """Replace a share `noise` of the labels by other labels, drawn uniformly."""
        if not self._noise:
            return labels
        is_wrong = (torch.rand(labels.shape, generator=generator) < self._noise) & (labels != UNCOUNTED)
        n = len(self.outputs)
        # A shift by 1 … n − 1 modulo n is uniform over all labels but the right one.
        other = (labels + torch.randint(1, n, labels.shape, generator=generator)) % n
        return torch.where(is_wrong, other, labels)


def padded(parts: Sequence[Batch]) -> Batch:
    """Return one batch of words of several lengths, padded with uncounted positions."""
    length = max(part.tokens.shape[1] for part in parts)
    tokens = [pad(part.tokens, (0, length - part.tokens.shape[1])) for part in parts]
    labels = [pad(part.labels, (0, length + 1 - part.labels.shape[1]), value=UNCOUNTED) for part in parts]
    return Batch(torch.cat(tokens), torch.cat(labels))


def transition_cover(machine: MooreMachine) -> tuple[np.ndarray, np.ndarray]:
    """Return a shortest word to each state followed by each letter, int64 (n·|Σ|, L) padded with 0, and the lengths."""
    access: dict[int, tuple[int, ...]] = {machine.start: ()}
    for q in (waiting := [machine.start]):
        for a, target in enumerate(machine.delta[:, q].tolist()):
            if target not in access:
                access[target] = (*access[q], a)
                waiting.append(target)
    cover = [(*access[q], a) for q in waiting for a in range(len(machine.alphabet))]
    lengths = np.array([len(word) for word in cover])
    table = np.zeros((len(cover), lengths.max()), np.int64)
    for row, word in zip(table, cover, strict=True):
        row[: len(word)] = word
    return table, lengths


class UserWords:
    """A user's words: tokens (n, T) and labels (n, T+1), padded with token 0 and `UNCOUNTED`."""

    def __init__(
        self, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...], tokens: Tensor, labels: Tensor
    ) -> None:
        self.alphabet, self.outputs, self.tokens, self.labels = alphabet, outputs, tokens, labels
        places = torch.arange(labels.shape[1])
        counts = labels != UNCOUNTED
        self.lengths = torch.where(counts, places, 0).amax(1)  # of the prefix up to the last output
        self._first = torch.where(counts, places, labels.shape[1]).amin(1)
        self._shortest, self._longest = max(1, int(self._first.min())), max(1, int(self.lengths.max()))

    def fit(self, length: int) -> int:
        """Return `length` limited to the range from the first to the last output."""
        return max(self._shortest, min(length, self._longest))

    def batch(self, size: int, length: int, generator: torch.Generator) -> Batch:
        """Return words drawn from those with an output within `length`, truncated to it."""
        among = torch.nonzero(self._first <= length)[:, 0]
        rows = among[torch.randint(len(among), (size,), generator=generator)]
        return Batch(self.tokens[rows, :length], self.labels[rows, : length + 1])

    def many(self, length: int, generator: torch.Generator) -> Batch:
        """Return all words."""
        return self.evaluation_words(length, generator)

    def evaluation_words(self, length: int, generator: torch.Generator) -> Batch:  # noqa: ARG002 - always all words
        """Return all words."""
        return Batch(self.tokens, self.labels)
