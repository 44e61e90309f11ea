"""Words of one length read side by side, up to the first failure of any of them."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.extraction.runner import pick
from fsa2lrnn.verification.falsify.judge import ModelComparison
from fsa2lrnn.verification.falsify.verdict import SearchOutcome

_PIECE, _FIRST_PIECE = 64, 8  # letters; of the failures in one piece the shortest is taken


def read_side_by_side(judge: ModelComparison, tokens: np.ndarray, clock: Deadline, what: str) -> SearchOutcome:
    """The shortest failing prefix of any of these words, int64 (N, T); words that can't fail any more are dropped."""
    n, longest = tokens.shape
    states, q = judge.runner.start(n), np.full(n, judge.goal.start)
    alive = np.array(range(n), np.int64)
    letters = length = 0
    while length < longest and len(alive):
        if clock.left() <= 0:
            return SearchOutcome(None, what, length, n, letters, finished=False)
        piece = tokens[alive, length : length + min(_PIECE, max(_FIRST_PIECE, length))]
        path = judge.goal.path(piece, q)
        logits, states = judge.runner.read(states, piece)
        letters += piece.size
        wrong = judge.marks(logits, path).wrong
        first = np.where(wrong.any(1), wrong.argmax(1), _PIECE)
        order = [i for i in np.argsort(first, kind="stable")[:8].tolist() if first[i] < _PIECE]
        words = [tokens[alive[i], : length + int(first[i]) + 1] for i in order]
        if (failure := judge.confirm_first(words)) is not None:
            return SearchOutcome(failure, what, len(failure.tokens), n, letters)
        length += piece.shape[1]
        kept = np.flatnonzero(judge.goal.hopeful[path[:, -1]])
        if len(kept) < len(alive):
            states = pick(states, kept)
        alive, q = alive[kept], path[kept, -1]
    return SearchOutcome(None, what, length, n, letters)
