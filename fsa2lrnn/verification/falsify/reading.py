"""Read words of one length as a batch, up to the first failure of any of them."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.extraction.runner import pick
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.verdict import SearchOutcome

_PIECE, _FIRST_PIECE = 64, 8  # letters; of the failures in one piece the shortest is taken


def read_side_by_side(comparison: ModelComparison, tokens: np.ndarray, clock: Deadline, what: str) -> SearchOutcome:
    """Search words int64 (N, T) for the shortest failing prefix, dropping words that cannot fail any more."""
    n, longest = tokens.shape
    states, q = comparison.runner.start(n), np.full(n, comparison.goal.start)
    alive = np.array(range(n), np.int64)
    letters = length = 0
    while length < longest and len(alive):
        if clock.left() <= 0:
            return SearchOutcome(None, what, length, n, letters, finished=False)
        piece = tokens[alive, length : length + min(_PIECE, max(_FIRST_PIECE, length))]
        path = comparison.goal.path(piece, q)
        logits, states = comparison.runner.read(states, piece)
        letters += piece.size
        wrong = comparison.marks(logits, path).wrong
        first = np.where(wrong.any(1), wrong.argmax(1), _PIECE)
        order = [i for i in np.argsort(first, kind="stable")[:8].tolist() if first[i] < _PIECE]
        words = [tokens[alive[i], : length + int(first[i]) + 1] for i in order]
        if (failure := comparison.confirm_first(words)) is not None:
            return SearchOutcome(failure, what, len(failure.tokens), n, letters)
        length += piece.shape[1]
        live = np.flatnonzero(comparison.goal.coaccessible[path[:, -1]])
        if len(live) < len(alive):
            states = pick(states, live)
        alive, q = alive[live], path[live, -1]
    return SearchOutcome(None, what, length, n, letters)
