"""Learning from words with one label at the end by the hypothesis spaces of the subregular hierarchy, simplest first.

Letters that act alike are united (`letter_classes`). Then there are three kinds of hypotheses: decision lists over
factors, tiers and subsequences (`decision_lists`), counters modulo a number (`counters`), and small automata that a
local search finds (`state_search`), if no short list and no counter is right on all words. Of those that are right on
all words, the one with the fewest states is chosen. Only the words are used: neither the class of the language nor
anything learned from other languages.
"""

from __future__ import annotations

import time

import numpy as np

from experiments.studies.mlregtest.counters import counter
from experiments.studies.mlregtest.decision_lists import DecisionList, Search
from experiments.studies.mlregtest.letter_classes import letter_classes
from experiments.studies.mlregtest.state_search import search
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.extra.learning import Data

_BOUNDS = (4.5, 3.0)  # of |z| for letters that act alike, the second if the first leaves words wrong
_SMALL, _MOST = 5, 12  # letters that are not united, and classes that are tried
_PARTITIONS = 2  # times the seconds, after which no further partition of the letters is tried
_FEW_ERRORS = 0.02  # share of wrong words for which one letter is taken apart, rather than a finer partition
_LARGE = 8  # states of an automaton beyond which longer lists are learned too

Hypothesis = tuple[MooreMachine, np.ndarray]
"""A machine over classes of letters, and the class of each letter."""


def by_hierarchy(data: Data, seconds: float = 6.0) -> MooreMachine:
    """Return the acceptor of the simplest hypothesis that is right on all words, or else that of the shortest list.

    Args:
        seconds: processor time of the search for automata and of that for lists, per partition of the letters.

    Raises:
        UnsupportedFormat: unless each word has one label at its end, of two; or if two labels contradict each other.
        BudgetExceeded: if there are too many classes of letters.
    """
    tokens, lengths, labels = end_labels(data)
    end = time.process_time() + _PARTITIONS * seconds
    n_letters = len(data.alphabet)
    wrong: tuple[DecisionList, np.ndarray] | None = None
    bounds = [*_BOUNDS]
    classes = np.arange(n_letters) if n_letters <= _SMALL else None
    while True:
        if classes is None:
            classes = letter_classes(tokens, lengths, labels, n_letters, bounds.pop(0))
        n_classes = int(classes.max()) + 1
        errors = np.ones(len(labels), bool)
        if n_classes <= _MOST:
            right, longer = _hypotheses(tokens, lengths, labels, classes, seconds)
            if right:
                return _expanded(*right[0], data)
            if longer is not None:
                errors = longer.predict(classes[tokens], lengths, n_classes) != labels
                if wrong is None or longer.bits < wrong[0].bits:
                    wrong = longer, classes
        if n_letters <= _SMALL or time.process_time() > end:
            break
        if errors.mean() < _FEW_ERRORS and n_classes < _MOST:
            classes = _letter_apart(classes, tokens, lengths, errors)
        elif bounds:
            classes = None
        else:
            break
    if wrong is None:
        raise BudgetExceeded(f"more than {_MOST} classes of letters: learn from more words or by another method")
    return _expanded(wrong[0].machine(int(wrong[1].max()) + 1), wrong[1], data)


def _hypotheses(
    tokens: np.ndarray, lengths: np.ndarray, labels: np.ndarray, classes: np.ndarray, seconds: float
) -> tuple[list[Hypothesis], DecisionList | None]:
    """Return hypotheses that are right on all words, the best one first, and the longer list if one was learned."""
    n_classes = int(classes.max()) + 1
    words = (np.ascontiguousarray(classes[tokens]), lengths, labels)
    lists = Search(*words, n_classes, seconds)
    right = list[Hypothesis]()
    if (short := lists.short_list()) is not None:
        right.append((short.machine(n_classes), classes))
    for letters in (classes, np.arange(len(classes))):
        if (counting := counter(letters[tokens], lengths, labels, int(letters.max()) + 1)) is not None:
            right.append((counting, letters))
    if not right and (searched := search(words, n_classes, seconds)) is not None:
        right.append((searched, classes))
    longer: DecisionList | None = None
    if short is None and (not right or right[0][0].n_states > _LARGE):
        longer = lists.longer_list()
        if not longer.errors:
            right.append((longer.machine(n_classes), classes))
    return sorted(right, key=lambda each: each[0].n_states), longer


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


def _expanded(machine: MooreMachine, classes: np.ndarray, data: Data) -> MooreMachine:
    outputs = [data.outputs[bool(y)] for y in machine.outputs]
    return MooreMachine(
        delta=np.asarray(machine.delta)[classes], outputs=outputs, start=machine.start, alphabet=data.alphabet
    ).minimise()
