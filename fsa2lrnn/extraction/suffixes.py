"""States told apart by what is put out after them: Nerode's classes, found on short words.

Two words are in one class if the model gives the same outputs along every probe word after either of them. The machine
of the classes is well defined if one letter takes one class to one class; where it does not, the letter before what
tells the targets apart is a new probe (Angluin's consistency), so that classes only ever split. Nothing is put to a
vote: what can't be resolved is an error.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.counting import BLANK, UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.extraction.asking import MaskedModel
from fsa2lrnn.extraction.runner import States, join, pick
from fsa2lrnn.extraction.walk import Interner, Tree

_PROBES = 32  # words to start with, at most: all of the greatest length of which there are no more
_FANNED = 1_024  # words that a level may lead to, or three of each class if those are more
_EACH = 3
_QUIET = 2  # levels without a new class or suffix before we believe that there are no more,
_FEWEST, _DEEP = 500, 16  # and either words or levels


class Classes(NamedTuple):
    """The machine of the classes and how it was found."""

    machine: MooreMachine
    depth: int
    exhaustive_depth: int
    prefixes: int
    suffixes: int
    suffix_length: int
    classes: int
    conflicts: int


def classes_of(asked: MaskedModel, max_classes: int, max_suffix: int, max_words: int, seed: int) -> Classes:
    """The machine of the classes of all words, as far as short words show them.

    Raises:
        BudgetExceeded: if there are more than `max_classes`, or more than `max_words` do not show them all.
        NotExact: if two words stay in one class, yet a letter and a suffix of more than `max_suffix` letters tell them
            apart.
    """
    table = _SuffixTable(asked)
    rng = np.random.default_rng(seed)
    level, depth, exhaustive, quiet = np.array([0]), 0, True, 0
    exhaustive_depth = 0
    while quiet < _QUIET or (len(table.classes) < _FEWEST and depth < _DEEP) or not table.is_complete():
        before = table.n_classes, table.conflicts
        level = table.extend(level)
        depth += 1
        while (conflict := table.conflict()) is not None:
            table.resolve(*conflict, max_suffix)
        if table.n_classes > max_classes or len(table.classes) > max_words:
            word = table.word(int((table.classes == table.n_classes - 1).argmax()))
            raise BudgetExceeded(
                f"{table.n_classes:,} classes after {len(table.classes):,} words, the last of them first reached by "
                f"{word}: raise max_classes ({max_classes:,}) or max_words ({max_words:,}), or the model is no finite "
                "automaton on words this long"
            )
        quiet = quiet + 1 if before == (table.n_classes, table.conflicts) else 0
        exhaustive_depth = depth if exhaustive else exhaustive_depth
        if not len(level):
            break
        kept = _keep(level, table.classes[level], max(_FANNED // len(asked.model.alphabet), 1), rng)
        exhaustive &= len(kept) == len(level)
        level = kept
    lengths = [len(suffix) for suffix in table.suffixes]
    return Classes(
        table.machine(), depth, exhaustive_depth, len(table.classes), len(lengths), max(lengths), table.n_classes,
        table.conflicts,
    )  # fmt: skip


def _keep(level: np.ndarray, classes: np.ndarray, at_most: int, rng: np.random.Generator) -> np.ndarray:
    """A random part of a level, in order, with some words of each class."""
    shuffled = rng.permutation(len(level))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    _, first, counts = np.unique(classes[by_class], return_index=True, return_counts=True)
    rank = np.empty(len(level), np.int64)  # which word of its class it is
    rank[by_class] = np.arange(len(level)) - np.repeat(first, counts)
    chosen = shuffled[np.argsort(rank[shuffled] >= _EACH, kind="stable")]
    return level[np.sort(chosen[: max(at_most, int((rank < _EACH).sum()))])]


class _SuffixTable:
    """Words, the states that they lead to, and what is put out after every suffix from there.

    Column 0 of a row is the mask's state, column 1 the word's own output, the others belong to the suffixes. Classes
    are numbered in order of their first words.
    """

    def __init__(self, asked: MaskedModel) -> None:
        self._asked = asked
        n_letters = len(asked.model.alphabet)
        length = 1
        while n_letters > 1 and n_letters ** (length + 1) <= _PROBES:
            length += 1
        self._probes = list(itertools.product(range(n_letters), repeat=length))
        self.suffixes = _prefixes(self._probes)
        self.conflicts = 0
        self._live = asked.mask.live
        self._states = asked.runner.start()
        self._tree = Tree()
        self._children = np.full((1, n_letters), -1)
        start = np.array([asked.mask.start])
        own = asked.numbers(asked.model.initial_logits()[None], start)
        self._rows = self._rows_of(self._states, start, own)
        self._seen = Interner()
        self.classes = self._seen.number(_bytes(self._rows))

    @property
    def n_classes(self) -> int:
        """Classes so far."""
        return int(self.classes.max()) + 1

    def word(self, i: int) -> tuple[object, ...]:
        """The letters of word i."""
        return tuple(self._asked.model.alphabet[a] for a in self._tree.word(i).tolist())

    def extend(self, level: np.ndarray) -> np.ndarray:
        """Every live letter after the words of a level: the numbers of the new words."""
        n_letters = self._children.shape[1]
        live = self._live[:, self._rows[level, 0]].T  # (N, |Σ|)
        logits, states = self._asked.runner.fan(pick(self._states, level), live)
        q = self._asked.mask.delta[:, self._rows[level, 0]].T[live]
        own = self._asked.numbers(logits, q)
        self._asked.letters += len(q)
        before, letters = np.nonzero(live)
        new = self._tree.grow(level[before], letters)
        self._children[level[before], letters] = new
        self._children = np.concatenate([self._children, np.full((len(new), n_letters), -1)])
        rows = self._rows_of(states, q, own)
        self.classes = np.concatenate([self.classes, self._seen.number(_bytes(rows))])
        self._rows = np.concatenate([self._rows, rows])
        self._states = join([self._states, states])
        return new

    def conflict(self) -> tuple[int, int, int] | None:
        """Words u and v of one class and a letter a such that ua and va are in different ones; None if there are none.

        What is known of a transition is what the first word of the class shows.
        """
        for a, children in enumerate(self._children.T):
            known = np.flatnonzero(children >= 0)
            first = np.full(self.n_classes, -1)
            first[self.classes[known[::-1]]] = known[::-1]
            other = self.classes[children[first[self.classes[known]]]] != self.classes[children[known]]
            if other.any():
                v = int(known[other.argmax()])
                return int(first[self.classes[v]]), v, a
        return None

    def resolve(self, u: int, v: int, a: int, max_suffix: int) -> None:
        """Splits the class of u and v: what tells ua from va, after an a, is a new probe."""
        left, right = (self._rows[self._children[word, a]] for word in (u, v))
        column = int((left != right).argmax()) - 2
        probe = (a, *(self.suffixes[column] if column >= 0 else ()))
        if len(probe) > max_suffix:
            raise NotExact(
                f"{self.word(u)} and {self.word(v)} can't be told apart by suffixes of up to {max_suffix} letters, but "
                f"{tuple(self._asked.model.alphabet[i] for i in probe)} does: raise max_suffix, or the model is no "
                "finite automaton on words this long"
            )
        found = self._along(self._states, self._rows[:, 0], [probe])
        self._probes.append(probe)
        new = [i for i, suffix in enumerate(_prefixes([probe])) if suffix not in self.suffixes]
        self.suffixes += [probe[: i + 1] for i in new]
        self._rows = np.concatenate([self._rows, found[:, new]], axis=1)
        self.conflicts += 1
        self._seen = Interner()
        self.classes = self._seen.number(_bytes(self._rows))

    def is_complete(self) -> bool:
        """Whether every live letter has been read in every class."""
        known = np.zeros((self.n_classes, self._children.shape[1]), bool)
        np.logical_or.at(known, self.classes, self._children >= 0)
        needed = np.zeros_like(known)
        needed[self.classes] = self._live[:, self._rows[:, 0]].T
        return bool((known | ~needed).all())

    def machine(self) -> MooreMachine:
        """The machine of the classes; letters that lead to no output that counts lead to a state of their own."""
        n, sink = self.n_classes, self.n_classes
        model = self._asked.model
        delta = np.full((self._children.shape[1], n + 1), sink)
        for a, children in enumerate(self._children.T):
            known = np.flatnonzero(children >= 0)
            delta[a, self.classes[known]] = self.classes[children[known]]
        _, first = np.unique(self.classes, return_index=True)
        own = [model.outputs[j] if j != UNCOUNTED else BLANK for j in self._rows[first, 1].tolist()]
        return MooreMachine(delta, [*own, BLANK], int(self.classes[0]), model.alphabet)

    def _rows_of(self, states: States, q: np.ndarray, own: np.ndarray) -> np.ndarray:
        every = [probe[: i + 1] for probe in self._probes for i in range(len(probe))]
        first = {suffix: i for i, suffix in reversed(list(enumerate(every)))}
        along = self._along(states, q, self._probes)
        return np.column_stack([q, own, along[:, [first[suffix] for suffix in self.suffixes]]])

    def _along(self, states: States, q: np.ndarray, probes: list[tuple[int, ...]]) -> np.ndarray:
        """Outputs after every letter of every probe, side by side: (N, letters of all probes)."""
        n, columns = len(q), []
        for length, group in itertools.groupby(probes, len):
            words = np.array(list(group), np.int64)
            every = np.repeat(np.arange(n), len(words))
            found = self._asked.read(pick(states, every), q[every], np.tile(words, (n, 1)))
            columns.append(found.reshape(n, len(words) * length))
        return np.concatenate(columns, axis=1)


def _prefixes(words: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The non-empty prefixes of all words, each once."""
    return list(dict.fromkeys(word[: i + 1] for word in words for i in range(len(word))))


def _bytes(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows).view(np.uint8)
