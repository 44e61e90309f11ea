"""From a failing word to shorter ones: letters cut out or replaced, as long as something shorter still fails."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.verification.falsify.judge import ModelComparison
from fsa2lrnn.verification.falsify.reading import read_side_by_side
from fsa2lrnn.verification.falsify.verdict import Failure, SearchOutcome

_LONGEST_CUT = 16
_LETTERS = 1 << 20  # letters of all variants of one word; of long words fewer are tried


def shorten(judge: ModelComparison, failure: Failure, clock: Deadline) -> SearchOutcome:
    """Of all words that arise by cutting out a few letters in a row or replacing one, the shortest that fails; and so
    on from there, until none is shorter."""
    best, letters, tried = failure, 0, 0
    what = f"cuts of up to {_LONGEST_CUT} letters and replaced letters"
    while True:
        outcome = read_side_by_side(judge, variants(best.tokens, judge.n_letters), clock, what)
        letters, tried = letters + outcome.letters, tried + outcome.words
        if outcome.failure is None:
            found = best if best is not failure else None
            return SearchOutcome(found, what, len(best.tokens) - 1, tried, letters, outcome.finished)
        best = outcome.failure


def variants(word: np.ndarray, n_letters: int) -> np.ndarray:
    """Words like `word` (T,), all cut to T − 1 letters: int64 (N, T − 1).

    A word from which letters were cut out is filled up with its own last letter; a replaced letter counts only if the
    word then fails before its end.

    >>> variants(np.array([0, 1, 0]), 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    n = len(word)
    if n < 2:
        return np.empty((0, max(0, n - 1)), np.int64)
    most = max(1, _LETTERS // n)
    found = [
        np.concatenate([word[:i], word[i + cut :], np.full(cut - 1, word[-1])])
        for cut in range(1, min(_LONGEST_CUT, n - 1) + 1)
        for i in range(n - cut + 1)
    ]
    found += [
        np.concatenate([word[:i], [a], word[i + 1 : -1]])
        for i in range(n - 1)
        for a in range(n_letters)
        if a != word[i]
    ]
    return np.unique(np.array(found[:most], np.int64), axis=0)
