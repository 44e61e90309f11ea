"""Myhill–Nerode classes of short words, distinguished by the model's outputs after suffixes.

Two words are in one class if the model gives the same outputs along every probe word after either of them. The machine
of the classes is well defined if each letter maps a class into one class. Otherwise the letter followed by a suffix
that distinguishes the targets becomes a new probe (Angluin's consistency), so classes only ever split. There is no
majority vote: a conflict that cannot be resolved is an error.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.counting import BLANK, UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.verification.extraction.breadth_first import Interner, Tree
from fsa2lrnn.verification.extraction.runner import MaskedModel, States, join, pick

_PROBES = 32  # the most initial probes: all words of the greatest length with at most so many
_FANNED = 1_024  # the most words of the next level, unless `_EACH` words of each class are more
_EACH = 3
_QUIET = 2  # levels without a new class or suffix after which the search ends
_FEWEST, _DEEP = 500, 16  # words or levels that it must have before it ends


class Classes(NamedTuple):
    """The machine of the classes and the statistics of the search, as in `Extraction`."""

    machine: MooreMachine
    depth: int
    exhaustive_depth: int
    prefixes: int
    suffixes: int
    suffix_length: int
    classes: int
    conflicts: int


def classes_of(masked: MaskedModel, max_classes: int, max_suffix: int, max_words: int, seed: int) -> Classes:
    """Return the machine of the classes that short words reach.

    Raises:
        BudgetExceeded: if there are more than `max_classes` classes, or `max_words` words do not reach them all.
        NotExact: if two words of one class are distinguished only by a suffix of more than `max_suffix` letters.
    """
    table = _SuffixTable(masked)
    rng = np.random.default_rng(seed)
    level, depth, exhaustive, quiet = np.array([0]), 0, True, 0
    exhaustive_depth = 0
    while quiet < _QUIET or (len(table.classes) < _FEWEST and depth < _DEEP) or not table.is_complete():
        before = table.n_classes, table.conflicts
        level = table.extend(level)  # all words that are one live letter longer
        depth += 1
        while (conflict := table.conflict()) is not None:  # split classes until transitions are well defined
            table.resolve(*conflict, max_suffix)
        if table.n_classes > max_classes or len(table.classes) > max_words:
            word = table.word(int((table.classes == table.n_classes - 1).argmax()))
            raise BudgetExceeded(
                f"{table.n_classes:,} classes after {len(table.classes):,} words, the last of them first reached by "
                f"{word}: raise max_classes ({max_classes:,}) or max_words ({max_words:,}), or the model is not "
                "a finite automaton on words this long"
            )
        quiet = quiet + 1 if before == (table.n_classes, table.conflicts) else 0
        exhaustive_depth = depth if exhaustive else exhaustive_depth
        if not len(level):
            break
        sample = _keep(level, table.classes[level], max(_FANNED // len(masked.model.alphabet), 1), rng)
        exhaustive &= len(sample) == len(level)
        level = sample
    lengths = [len(suffix) for suffix in table.suffixes]
    return Classes(
        table.machine(), depth, exhaustive_depth, len(table.classes), len(lengths), max(lengths), table.n_classes,
        table.conflicts,
    )  # fmt: skip


def _keep(level: np.ndarray, classes: np.ndarray, at_most: int, rng: np.random.Generator) -> np.ndarray:
    shuffled = rng.permutation(len(level))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    _, first, counts = np.unique(classes[by_class], return_index=True, return_counts=True)
    rank = np.empty(len(level), np.int64)  # the position of a word within its class
    rank[by_class] = np.arange(len(level)) - np.repeat(first, counts)
    chosen = shuffled[np.argsort(rank[shuffled] >= _EACH, kind="stable")]
    return level[np.sort(chosen[: max(at_most, int((rank < _EACH).sum()))])]


class _SuffixTable:
    """A table of words with their states and the outputs after every suffix.

    Column 0 of a row is the mask's state, column 1 the word's own output, the others are the outputs after suffixes.
    Classes are numbered in order of their first words.
    """

    def __init__(self, masked: MaskedModel) -> None:
        self._masked = masked
        n_letters = len(masked.model.alphabet)
        length = 1
        while n_letters > 1 and n_letters ** (length + 1) <= _PROBES:
            length += 1
        self._probes = list(itertools.product(range(n_letters), repeat=length))
        self.suffixes = _prefixes(self._probes)
        self.conflicts = 0
        self._live = masked.mask.live
        self._states = masked.runner.start()
        self._tree = Tree()
        self._children = np.full((1, n_letters), -1)
        start = np.array([masked.mask.start])
        own = masked.numbers(masked.model.initial_logits()[None], start)
        self._rows = self._rows_of(self._states, start, own)
        self._interner = Interner()
        self.classes = self._interner.number(_bytes(self._rows))

    @property
    def n_classes(self) -> int:
        return int(self.classes.max()) + 1

    def word(self, i: int) -> tuple[object, ...]:
        return tuple(self._masked.model.alphabet[a] for a in self._tree.word(i).tolist())

    def extend(self, level: np.ndarray) -> np.ndarray:
        """Extend the words of a level by every live letter and return the numbers of the new words."""
        n_letters = self._children.shape[1]
        live = self._live[:, self._rows[level, 0]].T  # (N, |Σ|)
        logits, states = self._masked.runner.fan(pick(self._states, level), live)
        q = self._masked.mask.delta[:, self._rows[level, 0]].T[live]
        own = self._masked.numbers(logits, q)
        self._masked.letters += len(q)
        before, letters = np.nonzero(live)
        new = self._tree.grow(level[before], letters)
        self._children[level[before], letters] = new
        self._children = np.concatenate([self._children, np.full((len(new), n_letters), -1)])
        rows = self._rows_of(states, q, own)
        self.classes = np.concatenate([self.classes, self._interner.number(_bytes(rows))])
        self._rows = np.concatenate([self._rows, rows])
        self._states = join([self._states, states])
        return new

    def conflict(self) -> tuple[int, int, int] | None:
        """Return words u and v of one class and a letter a such that ua and va are in different classes, or None.

        The first word of a class defines its transitions.
        """
        for a, children in enumerate(self._children.T):
            read = np.flatnonzero(children >= 0)
            first = np.full(self.n_classes, -1)
            first[self.classes[read[::-1]]] = read[::-1]
            other = self.classes[children[first[self.classes[read]]]] != self.classes[children[read]]
            if other.any():
                v = int(read[other.argmax()])
                return int(first[self.classes[v]]), v, a
        return None

    def resolve(self, u: int, v: int, a: int, max_suffix: int) -> None:
        """Split the class of u and v: a, followed by a suffix that distinguishes ua from va, becomes a new probe."""
        left, right = (self._rows[self._children[word, a]] for word in (u, v))
        column = int((left != right).argmax()) - 2
        probe = (a, *(self.suffixes[column] if column >= 0 else ()))
        if len(probe) > max_suffix:
            raise NotExact(
                f"{self.word(u)} and {self.word(v)} cannot be told apart by suffixes of up to {max_suffix} letters, "
                f"but {tuple(self._masked.model.alphabet[i] for i in probe)} does: raise max_suffix, or the model is "
                "not a finite automaton on words this long"
            )
        outputs = self._along(self._states, self._rows[:, 0], [probe])
        self._probes.append(probe)
        new = [i for i, suffix in enumerate(_prefixes([probe])) if suffix not in self.suffixes]
        self.suffixes += [probe[: i + 1] for i in new]
        self._rows = np.concatenate([self._rows, outputs[:, new]], axis=1)
        self.conflicts += 1
        self._interner = Interner()
        self.classes = self._interner.number(_bytes(self._rows))

    def is_complete(self) -> bool:
        is_read = np.zeros((self.n_classes, self._children.shape[1]), bool)
        np.logical_or.at(is_read, self.classes, self._children >= 0)
        needed = np.zeros_like(is_read)
        needed[self.classes] = self._live[:, self._rows[:, 0]].T
        return bool((is_read | ~needed).all())

    def machine(self) -> MooreMachine:
        """Return the machine of the classes; letters after which no output counts lead to a sink."""
        n, sink = self.n_classes, self.n_classes
        model = self._masked.model
        delta = np.full((self._children.shape[1], n + 1), sink)
        for a, children in enumerate(self._children.T):
            read = np.flatnonzero(children >= 0)
            delta[a, self.classes[read]] = self.classes[children[read]]
        _, first = np.unique(self.classes, return_index=True)
        own = [model.outputs[j] if j != UNCOUNTED else BLANK for j in self._rows[first, 1].tolist()]
        return MooreMachine(delta, [*own, BLANK], int(self.classes[0]), model.alphabet)

    def _rows_of(self, states: States, q: np.ndarray, own: np.ndarray) -> np.ndarray:
        every = [probe[: i + 1] for probe in self._probes for i in range(len(probe))]
        first = {suffix: i for i, suffix in reversed(list(enumerate(every)))}
        along = self._along(states, q, self._probes)
        return np.column_stack([q, own, along[:, [first[suffix] for suffix in self.suffixes]]])

    def _along(self, states: States, q: np.ndarray, probes: list[tuple[int, ...]]) -> np.ndarray:
        """Return the outputs after every letter of every probe: (N, letters of all probes)."""
        n, columns = len(q), []
        for length, group in itertools.groupby(probes, len):
            words = np.array(list(group), np.int64)
            every = np.repeat(np.arange(n), len(words))
            outputs = self._masked.read(pick(states, every), q[every], np.tile(words, (n, 1)))
            columns.append(outputs.reshape(n, len(words) * length))
        return np.concatenate(columns, axis=1)


def _prefixes(words: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(word[: i + 1] for word in words for i in range(len(word))))


def _bytes(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows).view(np.uint8)
