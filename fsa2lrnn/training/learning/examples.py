"""Where words and their outputs come from: a machine that answers for any word, or a user's words and no others.

A batch holds tokens, int64 (B, T), and labels, int64 (B, T+1): the empty word's first. `UNCOUNTED` does not count.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lower.harden import Heads
from fsa2lrnn.training.data import Batch, Sampler, Walks, make_sampler, words
from fsa2lrnn.training.learning.legal import is_restricted
from fsa2lrnn.training.learning.recipe import check_noise

_OF_FAILURES = 8  # one row in so many begins as a word that failed
_AT_ONCE = 4  # such words in a batch


class Examples(Protocol):
    """What a start is trained on."""

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def fit(self, length: int) -> int:
        """The largest length up to `length` that words may have, or the least there is."""
        ...

    def batch(self, size: int, length: int, generator: torch.Generator) -> Batch:
        """So many words of `length` letters, or shorter ones with nothing to count beyond their end."""
        ...

    def look(self, length: int, generator: torch.Generator) -> Batch:
        """What a candidate has to agree with before it is judged."""
        ...

    def many(self, length: int, generator: torch.Generator) -> Batch:
        """Words of all lengths to mend a head by."""
        ...


class FreshWords:
    """Fresh words of a machine, legal ones where the task says which are.

    Where any word is legal, half of the words avoid letters after which nothing can change any more; a quarter do so
    but for a letter or two, and a quarter do so up to a random place: uniform words alone would seldom see the inside
    of (ab)* or of Dyck words, and seldom a single mistake in them. Half of the words that begin like one that failed go
    on as such a word does from the start, half as it does from that place.
    """

    def __init__(self, machine: MooreMachine, sampler: str = "task", source: str = "", noise: float = 0.0) -> None:
        self.machine, self._noise = minimise(machine), noise
        self.sampler: Sampler = make_sampler(sampler, self.machine, source)
        self.is_restricted = is_restricted(self.sampler)
        outputs = None if self.is_restricted else tuple(dict.fromkeys(self.machine.outputs))
        self._words = words(self.machine, self.sampler, outputs)
        alive = self._words if self.is_restricted else words(self.machine, make_sampler("live", self.machine), outputs)
        self._alive = alive
        self.alphabet, self.outputs = self._words.alphabet, self._words.outputs
        if len(self.outputs) < 2:
            raise UnsupportedFormat(
                f"the machine has the outputs {self.outputs} and no other on these words: there is nothing to learn"
            )
        check_noise(noise, len(self.outputs))
        counts = not self.is_restricted
        self._empty = self.outputs.index(self.machine.outputs[self.machine.start]) if counts else UNCOUNTED
        self._failures: list[np.ndarray] = []

    def fit(self, length: int) -> int:
        """As `Words.fit`, at least one period."""
        return self._words.fit(max(length, len(self.sampler.scored)))

    def add(self, word: Sequence[Hashable]) -> None:
        """From now on some words begin like this one."""
        index = {letter: i for i, letter in enumerate(self.alphabet)}
        self._failures.append(np.array([index[letter] for letter in word], np.int64))

    @property
    def failures(self) -> list[list[int]]:
        """The words that were added, as tokens."""
        return [word.tolist() for word in self._failures]

    @failures.setter
    def failures(self, found: list[list[int]]) -> None:
        self._failures = [np.array(word, np.int64) for word in found]

    def batch(self, size: int, length: int, generator: torch.Generator) -> Batch:
        """Fresh words, some of which begin like one that failed."""
        again = [word for word in self._failures if len(word) <= length]
        n_again = max(1, size // _OF_FAILURES) if again else 0
        parts = self._fresh(size - n_again, length, generator)
        if again:
            n_words = min(_AT_ONCE, n_again)
            drawn = torch.randint(len(again), (n_words,), generator=generator).tolist()
            drawn[0] = len(again) - 1  # the last one always
            sizes = [n_again // n_words + (i < n_again % n_words) for i in range(n_words)]
            parts += [self._beginning(again[at], n, length, generator) for at, n in zip(drawn, sizes, strict=True)]
        labels = torch.cat([part.labels for part in parts])
        empty = torch.full((len(labels), 1), self._empty)
        return Batch(torch.cat([part.tokens for part in parts]), self._wrong(torch.cat([empty, labels], 1), generator))

    def look(self, length: int, generator: torch.Generator) -> Batch:
        """256 fresh words."""
        return self.batch(256, length, generator)

    def many(self, length: int, generator: torch.Generator) -> Batch:
        """512 fresh words of full length and 512 shorter ones."""
        short = self.batch(512, self.fit(max(2, length // 4)), generator)
        return padded([self.batch(512, length, generator), short])

    def labelled(self, word: Sequence[Hashable]) -> Batch:
        """One word with its outputs, none of them wrong."""
        index = {letter: i for i, letter in enumerate(self.alphabet)}
        found = self._labelled(torch.tensor([[index[letter] for letter in word]], dtype=torch.int64))
        return Batch(found.tokens, torch.cat([torch.tensor([[self._empty]]), found.labels], dim=1))

    def _fresh(self, size: int, length: int, generator: torch.Generator) -> list[Batch]:
        if self._alive is self._words:
            return [self._words.batch(size, length, generator)]
        n_alive, n_turned = size - size // 2, size // 4
        alive = self._alive.batch(n_alive, length, generator)
        slips = self._alive.batch(size - n_alive - n_turned, length, generator).tokens
        places = torch.randint(length, (len(slips), 2), generator=generator)
        slips.scatter_(1, places, torch.randint(len(self.alphabet), places.shape, generator=generator))
        turn = int(torch.randint(length + 1, (), generator=generator))
        first, walks = self._alive.advance(self._alive.begin(n_turned), turn, generator)
        return [alive, self._labelled(slips), _joined(first, self._words.advance(walks, length - turn, generator)[0])]

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
        """Words with the machine's outputs."""
        walk = Heads(self.machine.delta[:, None, :], np.array([self.machine.start]))
        states = torch.from_numpy(walk.states(tokens.numpy())[:, 1:, 0])
        phase = torch.arange(tokens.shape[1]) % len(self.sampler.scored)
        return Batch(tokens, self._words.labels[phase, states])

    def _wrong(self, labels: Tensor, generator: torch.Generator) -> Tensor:
        """Replace a share of the labels by others, each other one equally likely."""
        if not self._noise:
            return labels
        is_wrong = (torch.rand(labels.shape, generator=generator) < self._noise) & (labels != UNCOUNTED)
        n = len(self.outputs)
        other = (labels + torch.randint(1, n, labels.shape, generator=generator)) % n
        return torch.where(is_wrong, other, labels)


def padded(parts: Sequence[Batch]) -> Batch:
    """Words of several lengths in one batch, with nothing to count beyond their ends."""
    length = max(part.tokens.shape[1] for part in parts)
    tokens = [pad(part.tokens, (0, length - part.tokens.shape[1])) for part in parts]
    labels = [pad(part.labels, (0, length + 1 - part.labels.shape[1]), value=UNCOUNTED) for part in parts]
    return Batch(torch.cat(tokens), torch.cat(labels))


def _joined(first: Batch, second: Batch) -> Batch:
    return Batch(torch.cat([first.tokens, second.tokens], 1), torch.cat([first.labels, second.labels], 1))


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
        """Any length, from that of the first output to that of the last."""
        return max(self._shortest, min(length, self._longest))

    def batch(self, size: int, length: int, generator: torch.Generator) -> Batch:
        """Words drawn from those with an output within `length`, cut off there."""
        among = torch.nonzero(self._first <= length)[:, 0]
        rows = among[torch.randint(len(among), (size,), generator=generator)]
        return Batch(self.tokens[rows, :length], self.labels[rows, : length + 1])

    def many(self, length: int, generator: torch.Generator) -> Batch:
        """All of them."""
        return self.look(length, generator)

    def look(self, length: int, generator: torch.Generator) -> Batch:  # noqa: ARG002 - all there is, whatever is asked
        """All of them."""
        return Batch(self.tokens, self.labels)
