"""Extraction of a machine: from a model's states if they are finitely many (`extract`), else from its outputs.

`extract_learned` needs no knowledge of the target (docs/theory.md §8). A trained model's states drift and are not
finitely many, but on short words the model behaves like a machine. `certify` proves the length up to which the model
agrees with it.

The machine has the Myhill–Nerode classes of short words. Two words are in one class if the model gives the same outputs
along every probe word after either of them. The machine is well defined if each letter maps a class into one class.
Otherwise the letter followed by a suffix that distinguishes the targets becomes a new probe (Angluin's consistency), so
classes only ever split. There is no majority vote: a conflict that cannot be resolved is an error.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.counting import BLANK, UNCOUNTED, positions_of, smallest_after_first
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.automata.table_kernels import paths
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, NotExact, UnsupportedFormat
from fsa2lrnn.nn.model import decode
from fsa2lrnn.nn.network import Network
from fsa2lrnn.verification.extraction.breadth_first import (
    NOT_A_NUMBER,
    Interner,
    ModelSystem,
    Tree,
    extract,
    output_numbers,
)
from fsa2lrnn.verification.extraction.runner import MaskedModel, States, join, pick
from fsa2lrnn.verification.modelled import check_causal

SECONDS = 600  # a model that is far from every small machine ends at no other limit for hours
_HELD_OUT = 256  # random words


@dataclass(frozen=True)
class HeldOutAgreement:
    """The agreement of model and machine on random words that were not used in the extraction.

    Args:
        words, length: the number of words and their length.
        agreement: the share of the positions that count at which the two agree.
        first_disagreement: the length of the shortest prefix on which they disagree, None if they always agree.
    """

    words: int
    length: int
    agreement: float
    first_disagreement: int | None


@dataclass(frozen=True, eq=False)
class Classes(Brief):
    """The machine of the classes of short words, and the statistics of the search.

    Args:
        machine: over the model's alphabet.
        depth: the length of the longest word that was classified.
        exhaustive_depth: all words of at most this length were classified.
        prefixes: the number of words classified.
        suffixes, suffix_length: the number of distinguishing suffixes, and the length of the longest.
        classes: the number of states before minimisation, with a separate start state.
        conflicts: pairs of words in one class that a letter separated, each resolved by an additional suffix.
    """

    machine: MooreMachine
    depth: int
    exhaustive_depth: int
    prefixes: int
    suffixes: int
    suffix_length: int
    classes: int
    conflicts: int


@dataclass(frozen=True, eq=False)
class Extraction(Classes):
    """An extracted machine, the minimal one, and the evidence for it.

    Args:
        letters: the total number of model steps.
        held_out: the agreement on random words that were not used.
    """

    letters: int
    held_out: HeldOutAgreement


def extract_learned(
    model: Network,
    counts: MachineSource | None = None,
    empty_word: bool = False,
    horizon: int = 30,
    max_classes: int = 1_000,
    max_suffix: int = 32,
    max_words: int = 100_000,
    seed: int = 0,
    seconds: float | Deadline | None = SECONDS,
) -> Extraction:
    """Return the minimal machine that a model behaves like on short words, classified by their suffixes, with evidence.

    Args:
        model: any LRNN, trained or compiled, or a module in `wrap`.
        counts: an acceptor, or its source, of the words after which the output counts; elsewhere the machine gives
            None. By default every output counts, since a model does not record which outputs were trained.
        empty_word: whether the output on the empty word counts, which training rarely covers. If not, the start merges
            with a state that behaves like it on all longer words; without such a state, it has the output that the
            model's x₀ gives.
        horizon: the length of the random words of `held_out`.
        max_classes, max_suffix, max_words: the limits beyond which the extraction gives up.
        seed: the random seed.
        seconds: the limit of processor time; None for no limit.

    Raises:
        OutOfTime: if the time limit passes first.
        BudgetExceeded: if there are more than `max_classes` states, or `max_words` words do not reach them all.
        NotExact: if two words agree on all suffixes of up to `max_suffix` letters, but not on a longer one; if logits
            that count are NaN.
        InvalidMachine: if `counts` is over other letters.
        UnsupportedFormat: if None is an output of the model and `counts` is given.

    >>> from fsa2lrnn import compile_machine
    >>> from fsa2lrnn.automata import zoo
    >>> result = extract_learned(compile_machine(zoo.sum_mod(3)))
    >>> result.machine == zoo.sum_mod(3).minimise(), result.conflicts, result.held_out.agreement
    (True, 0, 1.0)
    """
    check_causal(model)
    counts = None if counts is None else as_machine(counts)
    if counts is not None and BLANK in model.outputs:
        raise UnsupportedFormat("None is an output of the model and would stand for none that counts: rename it")
    masked = MaskedModel(model, positions_of(model.alphabet, counts, empty_word), Deadline.of(seconds))
    classes = classes_of(masked, max_classes, max_suffix, max_words, seed)
    machine = _finished(model, classes.machine, counts, empty_word)
    held_out = _held_out(masked, machine, horizon, seed + 1)
    return Extraction(**{**vars(classes), "machine": machine}, letters=masked.letters, held_out=held_out)


def _finished(model: Network, machine: MooreMachine, counts: MooreMachine | None, empty_word: bool) -> MooreMachine:
    if empty_word:
        return minimise(machine)
    outputs = list(machine.outputs)
    if counts is None or counts.outputs[counts.start]:
        outputs[machine.start] = model.outputs[int(decode(model.initial_logits()[None], -1))]
    return smallest_after_first(MooreMachine(machine.delta, outputs, machine.start, machine.alphabet))


def _held_out(masked: MaskedModel, machine: MooreMachine, length: int, seed: int) -> HeldOutAgreement:
    """Return how a machine agrees with the model on `_HELD_OUT` random words of one length, where outputs count."""
    tokens = masked.mask.random_words(np.random.default_rng(seed), _HELD_OUT, length)
    number = {output: j for j, output in enumerate(masked.model.outputs)}
    expected = np.array([number.get(output, UNCOUNTED) for output in machine.outputs])
    predicted, counts = masked.words(tokens), masked.mask.counts[masked.mask.path(tokens)]
    path = paths(machine.delta, np.full(len(tokens), machine.start), tokens)
    wrong = counts & (expected[path] != predicted)
    bad = np.flatnonzero(wrong.any(0))
    agreement = 1 - float(wrong.sum()) / max(1, int(counts.sum()))
    return HeldOutAgreement(len(tokens), length, agreement, int(bad[0]) + 1 if len(bad) else None)


_PROBES = 32  # the most initial probes: all words of the greatest length with at most so many
_FANNED = 1_024  # the most words of the next level, unless `_EACH` words of each class are more
_EACH = 3
_QUIET = 2  # levels without a new class or suffix after which the search ends
_FEWEST, _DEEP = 500, 16  # words or levels that it must have before it ends


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
    # The search ends when nothing has changed for some levels and every class has a successor under each live letter.
    while quiet < _QUIET or (len(table.classes) < _FEWEST and depth < _DEEP) or not table.is_complete():
        before = table.n_classes, table.conflicts
        level = table.extend(level)  # all words that are one live letter longer
        depth += 1
        # Each conflict splits a class, so that the loop ends: there are at most as many classes as words.
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
            # Assigned in reverse order, so that the first word of each class is what remains.
            first[self.classes[read[::-1]]] = read[::-1]
            other = self.classes[children[first[self.classes[read]]]] != self.classes[children[read]]
            if other.any():
                v = int(read[other.argmax()])
                return int(first[self.classes[v]]), v, a
        return None

    def resolve(self, u: int, v: int, a: int, max_suffix: int) -> None:
        """Split the class of u and v: a, followed by a suffix that distinguishes ua from va, becomes a new probe."""
        left, right = (self._rows[self._children[word, a]] for word in (u, v))
        # Two columns, the mask's state and the word's own output, come before those of the suffixes.
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
        # Rows are longer now, so all words are numbered anew; classes only split, as no column was removed.
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


__all__ = [
    "Extraction",
    "HeldOutAgreement",
    "ModelSystem",
    "NOT_A_NUMBER",
    "extract",
    "extract_learned",
    "output_numbers",
]
