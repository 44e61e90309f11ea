"""Data sets as MLRegTest defines them (arXiv 2304.07687, section 4): words with one label each, half of them accepted.

Training words and short test words have 20 to 29 letters, long ones 31 to 50, equally many of each length and label,
drawn uniformly among the words of that length and label. An adversarial test set holds pairs: a word drawn uniformly
among those of the rarer label, and one of those with the other label at edit distance 1. No word of a random test set
is in the training set or comes twice. The published sets are drawn by rejection; here each letter is drawn with the
share of words that lead to the label, which gives the same distribution and also reaches labels that are rare.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.learning import Data

SHORT, LONG = range(20, 30), range(31, 51)
_ROUNDS = 200  # draws of a set without repetitions
_TRIES = 10  # words drawn per pair of an adversarial set

Word = tuple[int, ...]
Labelled = list[tuple[Word, bool]]


class LanguageWords:
    """The words of an acceptor by label and length, drawn from a seed."""

    def __init__(self, machine: MooreMachine, seed: int = 0) -> None:
        self.machine = machine
        self._accepts = np.array([bool(output) for output in machine.outputs])
        self._random = np.random.default_rng(seed)
        # share[r][q]: of the words of r letters, those that lead from q to acceptance.
        self._share = [self._accepts.astype(float)]
        for _ in range(max(LONG)):
            self._share.append(self._share[-1][machine.delta].mean(0))

    def labels(self, words: np.ndarray) -> np.ndarray:
        """Return whether words of one length are accepted: int64 (N, T) -> bool (N,)."""
        q = np.full(len(words), self.machine.start)
        for letters in np.transpose(words):
            q = self.machine.delta[letters, q]
        return self._accepts[q]

    def draw(self, length: int, label: bool, size: int) -> np.ndarray:
        """Return words drawn uniformly among those of a length and label, int64 (size, length).

        Raises `UnsupportedFormat` if no word of this length has the label.
        """
        delta, q = self.machine.delta, np.full(size, self.machine.start)
        share = self._share if label else [1 - each for each in self._share]
        if share[length][self.machine.start] <= 0:
            raise UnsupportedFormat(
                f"no word of {length} letters is {'accepted' if label else 'rejected'}, so that no balanced data set "
                "of this length exists: choose another length"
            )
        words = np.empty((size, length), np.int64)
        for k in range(length):
            weights = share[length - k - 1][delta[:, q]].cumsum(0)  # (|Σ|, size)
            drawn = self._random.random(size) * weights[-1]
            words[:, k] = (weights <= drawn).sum(0).clip(max=len(delta) - 1)
            q = delta[words[:, k], q]
        return words

    def training(self, size: int) -> Labelled:
        """Return a training set; words may come twice. Every set begins with the smaller ones."""
        each = size // (2 * len(SHORT))
        parts = [(self.draw(n, label, each), label) for n in SHORT for label in (True, False)]
        return [(tuple(words[i].tolist()), label) for i in range(each) for words, label in parts]

    def random_test(self, lengths: range, size: int, training: Labelled) -> Labelled:
        """Return test words that are all different and not in the training set.

        Raises `UnsupportedFormat` if too few such words were drawn.
        """
        before = {word for word, _ in training}
        each, test = size // (2 * len(lengths)), Labelled()
        for n in lengths:
            for label in (True, False):
                new = dict[Word, None]()
                for _ in range(_ROUNDS):
                    new |= dict.fromkeys(w for w in map(tuple, self.draw(n, label, each).tolist()) if w not in before)
                    if len(new) >= each:
                        break
                else:
                    raise UnsupportedFormat(
                        f"only {len(new)} of {each} words of {n} letters with label {label} are not in the training "
                        "set: ask for a smaller test set"
                    )
                test += [(word, label) for word in list(new)[:each]]
        return test

    def adversarial_test(self, lengths: range, size: int) -> Labelled:
        """Return pairs of an accepted and a rejected word at edit distance 1, one after the other.

        The first word of a pair has the rarer label: few of the others have a neighbour with another label.
        """
        test = Labelled()
        for n in lengths:
            pairs, label = 0, bool(self._share[n][self.machine.start] <= 0.5)
            for _ in range(_TRIES * size):
                word = self.draw(n, label, 1)[0]
                near = self._neighbours(word)
                if not near:
                    continue
                other = near[self._random.integers(len(near))]
                pair = [(tuple(word.tolist()), label), (other, not label)]
                test += pair if label else pair[::-1]
                pairs += 1
                if pairs == size // (2 * len(lengths)):
                    break
            else:
                raise UnsupportedFormat(
                    f"only {pairs} of {_TRIES * size:,} words of {n} letters have a neighbour of the other label: "
                    "there are too few for an adversarial test set"
                )
        return test

    def _neighbours(self, word: np.ndarray) -> list[Word]:
        """Return the words of the other label at edit distance 1, by deletion, substitution or insertion."""
        delta, n = self.machine.delta, len(word)
        # Before each position the state of the word, and the label of its rest from every state.
        state = [self.machine.start]
        for a in word:
            state.append(delta[a, state[-1]])
        rest = [self._accepts]
        for a in word[::-1]:
            rest.append(rest[-1][delta[a]])
        rest.reverse()
        label = self._accepts[state[-1]]
        letters = word.tolist()
        near = [(*letters[:i], *letters[i + 1 :]) for i in range(n) if rest[i + 1][state[i]] != label]
        for i in range(n + 1):
            for after in (i, i + 1):  # insertion before the letter, or substitution for it
                if after <= n:
                    others = np.flatnonzero(rest[after][delta[:, state[i]]] != label).tolist()
                    near += [(*letters[:i], a, *letters[after:]) for a in others]
        return near


def data(labelled: Labelled, machine: MooreMachine) -> Data:
    """Return labelled words as `learn` takes them, over the letters of the machine."""
    lengths = torch.tensor([len(word) for word, _ in labelled])
    tokens = torch.zeros(len(labelled), int(lengths.max()), dtype=torch.int64)
    tokens[torch.arange(tokens.shape[1]) < lengths[:, None]] = torch.tensor([a for word, _ in labelled for a in word])
    labels = torch.full((len(labelled), tokens.shape[1] + 1), UNCOUNTED)
    labels[torch.arange(len(labelled)), lengths] = torch.tensor([int(label) for _, label in labelled])
    lines = torch.arange(1, len(labelled) + 1)
    return Data(tuple(machine.alphabet), (False, True), tokens, labels, lines, lengths)


def read_published(path: Path) -> list[tuple[str, bool]]:
    """Return the words of a published file: `word<TAB>TRUE` or `FALSE` per line, one character per letter.

    Raises `UnsupportedFormat` with the lines that are neither, and for an empty file.
    """
    words = list[tuple[str, bool]]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        word, tab, label = line.rpartition("\t")
        if not tab or label not in ("TRUE", "FALSE"):
            raise UnsupportedFormat(f"{path}, line {number}: {line[:60]!r} is not a word, a tab, and TRUE or FALSE")
        words.append((word, label == "TRUE"))
    if not words:
        raise UnsupportedFormat(f"{path} is empty: give a file with a word and its label per line")
    return words
