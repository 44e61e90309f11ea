"""Learning from words with one label at the end by the hypothesis spaces of the subregular hierarchy, simplest first.

Letters that act alike are united (`letter_classes`). Then there are three kinds of hypotheses: decision lists over
factors, tiers and subsequences (`decision_lists`), counters modulo a number (`counters`), and small automata that a
local search finds (`state_search`), if no short list and no counter is right on all words. Of those that are right on
all words, the one with the fewest states is chosen. Where none is, words that end in a state with one label only are
decided, and the rest is learned in the same way, with classes of letters of its own: so an automaton with a sink and a
counter are found one after the other. Only the words are used: neither the class of the language nor anything learned
from other languages.
"""

from __future__ import annotations

import time

import numpy as np

from experiments.studies.mlregtest.counters import counter
from experiments.studies.mlregtest.decision_lists import DecisionList, Search, product_table
from experiments.studies.mlregtest.letter_classes import letter_classes
from experiments.studies.mlregtest.state_search import (
    ends,
    entropy,
    errors_of,
    from_zero,
    label_counts,
    search,
    simplified,
)
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.learning import Data

_BOUNDS = (4.5, 3.0)  # of |z| for letters that act alike, the second if the first leaves words wrong
_SMALL, _MOST = 5, 12  # letters that are not united, and classes that are tried
_IN_ALL = 8  # times the seconds, after which no further hypothesis is begun
_PARTITIONS = 2  # times the seconds, after which no further partition of the letters is tried
_FEW_ERRORS = 0.02  # share of wrong words for which one letter is taken apart, rather than a finer partition
_DECIDED = 50  # words of one label that end in a state that decides
_UNDECIDED = 0.9  # share of words that no state decides, beyond which a table is given up
_SIMPLIFIED = 50  # states of an automaton of several hypotheses that is simplified
_LARGE = 8  # states of an automaton beyond which longer lists are learned too

Hypothesis = tuple[MooreMachine, np.ndarray]
"""A machine over classes of letters, and the class of each letter."""

Words = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Tokens int64 (N, T), padded; lengths and labels, 0 or 1, of each word, (N,)."""


def by_hierarchy(data: Data, seconds: float = 6.0) -> MooreMachine:
    """Return the acceptor of the simplest hypothesis that is right on all words, or else the best that was found.

    Args:
        seconds: processor time of the search for automata and of that for lists, per partition of the letters; eight
            times as much in all.

    Raises:
        UnsupportedFormat: unless each word has one label at its end, of two; or if two labels contradict each other.
        BudgetExceeded: if there are too many classes of letters.
    """
    learned = _learned(end_labels(data), len(data.alphabet), seconds, time.process_time() + _IN_ALL * seconds)
    if learned is None:
        raise _too_many_classes()
    return _for(data, learned)


def by_lists(data: Data, seconds: float = 6.0) -> MooreMachine:
    """Return the acceptor of the shortest decision list alone.

    The arguments and errors are those of `by_hierarchy`.
    """
    tokens, lengths, labels = end_labels(data)
    n_letters = len(data.alphabet)
    best: tuple[DecisionList, np.ndarray] | None = None
    alike = (letter_classes(tokens, lengths, labels, n_letters, bound) for bound in _BOUNDS)
    for classes in [np.arange(n_letters)] if n_letters <= _SMALL else alike:
        n_classes = int(classes.max()) + 1
        if n_classes > _MOST:
            continue
        lists = Search(np.ascontiguousarray(classes[tokens]), lengths, labels, n_classes, seconds)
        learned = lists.short_list() or lists.longer_list()
        if best is None or learned.bits < best[0].bits:
            best = learned, classes
        if not best[0].errors:
            break
    if best is None:
        raise _too_many_classes()
    return _for(data, _over_letters(best[0].machine(int(best[1].max()) + 1), best[1]))


def _too_many_classes() -> BudgetExceeded:
    return BudgetExceeded(f"more than {_MOST} classes of letters: learn from more words or by another method")


def _for(data: Data, machine: MooreMachine) -> MooreMachine:
    """Return the minimal machine with the alphabet and outputs of the data."""
    outputs = [data.outputs[bool(y)] for y in machine.outputs]
    return MooreMachine(delta=machine.delta, outputs=outputs, start=machine.start, alphabet=data.alphabet).minimise()


def _learned(words: Words, n_letters: int, seconds: float, end: float) -> MooreMachine | None:
    """Return the machine over the letters 0 … n−1 with the outputs 0 and 1, None if there are too many classes."""
    tokens, lengths, labels = words = _alternating(words)
    ending = time.process_time() + _PARTITIONS * seconds
    wrong: tuple[DecisionList, np.ndarray] | None = None
    apart, closest, least = np.zeros(n_letters, np.int64), np.zeros((1, 1), np.int64), np.inf
    bounds = [*_BOUNDS]
    classes = np.arange(n_letters) if n_letters <= _SMALL else None
    while True:
        if classes is None:
            classes = letter_classes(*words, n_letters, bounds.pop(0))
        n_classes = int(classes.max()) + 1
        errors = np.ones(len(labels), bool)
        if n_classes <= _MOST:
            right, longer, delta = _hypotheses(words, classes, seconds)
            if right:
                return _over_letters(*right[0])
            if (bits := entropy(delta[classes], words)) < least:
                apart, closest, least = classes, delta, bits
            if longer is not None:
                errors = longer.predict(classes[tokens], lengths, n_classes) != labels
                if wrong is None or longer.bits < wrong[0].bits:
                    wrong = longer, classes
        if n_letters <= _SMALL or time.process_time() > min(end, ending):
            break
        if errors.mean() < _FEW_ERRORS and n_classes < _MOST:
            classes = _letter_apart(classes, tokens, lengths, errors)
        elif bounds:
            classes = None
        else:
            break
    found = with_rest(closest[apart], words, seconds, (time.process_time() + end) / 2)
    errors_left = len(labels) if found is None else errors_of(found, words)
    if errors_left and (left := end - time.process_time()) > 0:
        over_classes = np.ascontiguousarray(apart[tokens]), lengths, labels
        searched, _ = search(over_classes, int(apart.max()) + 1, left, seed=1)
        if searched is not None:
            return _over_letters(searched, apart)
    if wrong is None or wrong[0].errors >= errors_left:
        return found
    return _over_letters(wrong[0].machine(int(wrong[1].max()) + 1), wrong[1])


def with_rest(delta: np.ndarray, words: Words, seconds: float, end: float) -> MooreMachine | None:
    """Return a machine that learns again where words of both labels end in a state of a table, and ends with its label.

    None if the table decides nothing, or no time is left.
    """
    tokens, lengths, labels = words
    counts = label_counts(delta, *words)
    is_open = (counts.min(1) > 0) | (counts.max(1) < _DECIDED)
    rest = is_open[ends(delta, tokens, lengths)]
    if rest.mean() > _UNDECIDED or time.process_time() > end - seconds:
        return None
    learned = _learned((tokens[rest], lengths[rest], labels[rest]), len(delta), seconds, end)
    if learned is None:
        return None
    table, outputs = from_zero(learned)
    both, q = product_table(delta, table)
    of = np.where(is_open[q[:, 0]], outputs[q[:, 1]], counts.argmax(1)[q[:, 0]])
    machine = MooreMachine(delta=both, outputs=of.tolist(), alphabet=range(len(delta))).minimise()
    return simplified(machine, words) if machine.n_states <= _SIMPLIFIED and not errors_of(machine, words) else machine


def _alternating(words: Words) -> Words:
    """Return the words with the labels in turn as long as there are words of both."""
    labels = words[2]
    place = np.empty(len(labels), np.int64)
    for label in (0, 1):
        place[labels == label] = np.arange((labels == label).sum())
    order = np.argsort(place, kind="stable")
    return words[0][order], words[1][order], labels[order]


def _hypotheses(
    words: Words, classes: np.ndarray, seconds: float
) -> tuple[list[Hypothesis], DecisionList | None, np.ndarray]:
    """Return hypotheses that are right on all words, the best one first.

    Also the longer list if one was learned, and the table of least entropy that the search found.
    """
    tokens, lengths, labels = words
    n_classes = int(classes.max()) + 1
    over_classes = np.ascontiguousarray(classes[tokens]), lengths, labels
    lists = Search(*over_classes, n_classes, seconds)
    right, closest = list[Hypothesis](), np.zeros((n_classes, 1), np.int64)
    if (short := lists.short_list()) is not None:
        right.append((short.machine(n_classes), classes))
    for letters in (classes, np.arange(len(classes))):
        if (counting := counter(letters[tokens], lengths, labels, int(letters.max()) + 1)) is not None:
            right.append((counting, letters))
    if not right:
        searched, closest = search(over_classes, n_classes, seconds)
        if searched is not None:
            right.append((searched, classes))
    longer: DecisionList | None = None
    if short is None and (not right or right[0][0].n_states > _LARGE):
        longer = lists.longer_list()
        if not longer.errors:
            right.append((longer.machine(n_classes), classes))
    return sorted(right, key=lambda each: each[0].n_states), longer, closest


def _over_letters(machine: MooreMachine, classes: np.ndarray) -> MooreMachine:
    delta = np.asarray(machine.delta)[classes]
    return MooreMachine(delta=delta, outputs=machine.outputs, start=machine.start, alphabet=range(len(classes)))


def _letter_apart(classes: np.ndarray, tokens: np.ndarray, lengths: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return the classes with one letter apart: that which wrong words contain most often beyond expectation."""
    in_word = np.arange(tokens.shape[1]) < lengths[:, None]
    contains = np.stack([((tokens == a) & in_word).any(1) for a in range(len(classes))])
    share, n = contains.mean(1), errors.sum()
    z = (contains[:, errors].sum(1) - n * share) / np.sqrt(n * share * (1 - share) + 1e-9)
    z[np.bincount(classes)[classes] == 1] = -np.inf
    changed = classes.copy()
    changed[int(z.argmax())] = classes.max() + 1
    return changed


def end_labels(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return tokens (N, T), lengths (N,), and the label 0 or 1 at the end of each word (N,).

    Raises `UnsupportedFormat` unless each word has one label at its end, of two, without contradictions.
    """
    tokens, lengths = data.tokens.numpy(), data.lengths.numpy()
    labels = data.labels.numpy()[np.arange(len(tokens)), lengths]
    if len(data.outputs) != 2 or data.n_labels != len(tokens) or (labels == UNCOUNTED).any():
        raise UnsupportedFormat(
            f"{data.n_labels:,} labels of {len(data.outputs)} outputs for {len(tokens):,} words: this method takes "
            "words with one label at the end, of two outputs; use learn for other data"
        )
    padded = np.where(np.arange(tokens.shape[1]) < lengths[:, None], tokens, -1)
    rows, index = np.unique(np.column_stack([padded, lengths]), axis=0, return_inverse=True)
    of = np.zeros((len(rows), 2), bool)
    of[index.ravel(), labels] = True
    if of.all(1).any():
        data.check_consistent()
    return tokens, lengths, labels
