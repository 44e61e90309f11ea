"""Shorten a counterexample by cutting out or replacing letters, as long as a shorter word fails."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.reading import read_side_by_side
from fsa2lrnn.verification.falsify.verdict import Failure, SearchOutcome

_LONGEST_CUT = 16
_LETTERS = 1 << 20  # letters of all variants of one word: long words get fewer variants


def shorten(comparison: ModelComparison, failure: Failure, clock: Deadline) -> SearchOutcome:
    """Replace a counterexample by its shortest failing variant, until no variant is shorter.

    In a variant a few letters are cut out, or one is replaced.
    """
    best, letters, tried = failure, 0, 0
    what = f"cuts of up to {_LONGEST_CUT} letters and replaced letters"
    while True:
        outcome = read_side_by_side(comparison, variants(best.tokens, comparison.n_letters), clock, what)
        letters, tried = letters + outcome.letters, tried + outcome.words
        if outcome.failure is None:
            shorter = best if best is not failure else None
            return SearchOutcome(shorter, what, len(best.tokens) - 1, tried, letters, outcome.finished)
        best = outcome.failure


def variants(word: np.ndarray, n_letters: int) -> np.ndarray:
    """Return the variants of a word (T,), all of T − 1 letters: int64 (N, T − 1).

    A word from which letters were cut out is padded with its last letter. A word with a replaced letter loses its last
    letter, so it counts only if it fails before the end.

    >>> variants(np.array([0, 1, 0]), 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    n = len(word)
    if n < 2:
        return np.empty((0, max(0, n - 1)), np.int64)
    most = max(1, _LETTERS // n)
    candidates = [
        np.concatenate([word[:i], word[i + cut :], np.full(cut - 1, word[-1])])
        for cut in range(1, min(_LONGEST_CUT, n - 1) + 1)
        for i in range(n - cut + 1)
    ]
    candidates += [
        np.concatenate([word[:i], [a], word[i + 1 : -1]])
        for i in range(n - 1)
        for a in range(n_letters)
        if a != word[i]
    ]
    return np.unique(np.array(candidates[:most], np.int64), axis=0)
