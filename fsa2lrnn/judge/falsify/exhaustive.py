"""All words, shortest first, as far as they can still fail."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.extraction import Interner
from fsa2lrnn.extraction.runner import to_bytes
from fsa2lrnn.judge.falsify.frontier import Frontier
from fsa2lrnn.judge.falsify.judge import Judge
from fsa2lrnn.judge.falsify.verdict import Budget, Clock, Outcome
from fsa2lrnn.judge.goal import joint


def exhaustive(judge: Judge, budget: Budget, below: int, clock: Clock) -> Outcome:
    """Every word of less than `below` letters, until a level would hold more than `budget.words` joint states.

    Words into states from which nothing counts are left out, and of words that lead to the same bits of the model's
    state and the same state of the machine all but the first: what follows is the same. Where no new pair is reached
    the states have closed, and no word of any length fails.
    """
    words, seen = Frontier(judge), Interner()
    seen.number(joint(to_bytes(words.states), words.q))
    level = 0.0  # seconds that the last length took
    while len(words):
        n_next = int(judge.live[:, words.q].sum())
        is_as_far_as_told = n_next > budget.words or words.length + 1 >= below
        if is_as_far_as_told or level * n_next / len(words) > clock.left:
            what = f"all words, {len(words):,} joint states"
            return Outcome(None, what, words.length, len(words), words.letters, is_as_far_as_told)
        begun = clock.passed
        ahead = words.look()
        if ahead.failure is not None:
            return Outcome(ahead.failure, "all words", words.length, len(words), words.letters)
        before = len(seen)
        found, first = np.unique(seen.number(joint(to_bytes(ahead.states), ahead.q)), return_index=True)
        words.keep(ahead, first[found >= before])
        level = clock.passed - begun
    what = f"all words: {len(seen):,} joint states, closed"
    return Outcome(None, what, words.length, 0, words.letters, closed=True)
