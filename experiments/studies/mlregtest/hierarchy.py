"""Learning from words with one label at the end by the hypothesis spaces of the subregular hierarchy, simplest first.

Letters that act alike are united (`letter_classes`); then the shortest consistent decision list over factors, tiers and
subsequences is learned (`decision_lists`), or a counter modulo a number (`counters`) if no list is consistent. Only the
words are used: neither the class of the language nor anything learned from other languages.
"""

from __future__ import annotations

import numpy as np

from experiments.studies.mlregtest.counters import counter
from experiments.studies.mlregtest.decision_lists import DecisionList, Search
from experiments.studies.mlregtest.letter_classes import letter_classes
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.extra.learning import Data

_BOUNDS = (4.5, 3.0)  # of |z| for letters that act alike, the second if the first leaves words wrong
_SMALL, _MOST = 5, 12  # letters that are not united, and classes that are tried


def by_hierarchy(data: Data, seconds: float = 6.0) -> MooreMachine:
    """Return the acceptor of the simplest hypothesis, over the alphabet and outputs of the data.

    Args:
        seconds: processor time after which no further space of lists is searched, per partition of the letters.

    Raises:
        UnsupportedFormat: unless each word has one label at its end, of two; or if two labels contradict each other.
        BudgetExceeded: if there are too many classes of letters.
    """
    tokens, lengths, labels = end_labels(data)
    n_letters = len(data.alphabet)
    identity = np.arange(n_letters)
    alike = (letter_classes(tokens, lengths, labels, n_letters, bound) for bound in _BOUNDS)
    best: tuple[DecisionList, np.ndarray] | None = None
    # Short lists, then counters, then longer lists; first for fewer classes of letters.
    for classes in [identity] if n_letters <= _SMALL else alike:
        n_classes = int(classes.max()) + 1
        if n_classes > _MOST:
            continue
        search = Search(classes[tokens], lengths, labels, n_classes, seconds)
        learned = search.short_list()
        if learned is None:
            for letters in (classes, identity):
                counting = counter(letters[tokens], lengths, labels, int(letters.max()) + 1)
                if counting is not None:
                    return _expanded(counting, letters, data)
            learned = search.longer_list()
        if best is None or learned.bits < best[0].bits:
            best = learned, classes
        if not best[0].errors:
            break
    if best is None:
        raise BudgetExceeded(f"more than {_MOST} classes of letters: learn from more words or by another method")
    return _expanded(best[0].machine(int(best[1].max()) + 1), best[1], data)


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
