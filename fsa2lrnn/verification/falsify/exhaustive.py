"""All words, shortest first, as far as they can still fail."""

from __future__ import annotations

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import counted
from fsa2lrnn.verification.falsify.frontier import Frontier
from fsa2lrnn.verification.falsify.judge import ModelComparison
from fsa2lrnn.verification.falsify.verdict import Budget, SearchOutcome


def exhaustive(judge: ModelComparison, budget: Budget, below: int, clock: Deadline) -> SearchOutcome:
    """Every word of less than `below` letters, until a level would hold more than `budget.words` joint states.

    Words into states from which nothing counts are left out, and of words that lead to the same bits of the model's
    state and the same state of the machine all but the first: what follows is the same. Where no new pair is reached
    the states have closed, and no word of any length fails.
    """
    words = Frontier(judge)
    level = 0.0  # seconds that the last length took
    while len(words):
        n_next = int(words.live.sum())
        is_as_far_as_told = n_next > budget.words or words.length + 1 >= below
        if is_as_far_as_told or level * n_next / len(words) > clock.left():
            what = f"all words, {counted(len(words), 'joint state')}"
            return SearchOutcome(None, what, words.length, len(words), words.letters, is_as_far_as_told)
        begun = clock.passed()
        found = words.judged()
        if found.failure is not None:
            return SearchOutcome(found.failure, "all words", words.length, len(words), words.letters)
        words.keep_new(found.ahead, found.q)
        level = clock.passed() - begun
    what = f"all words: {counted(words.seen, 'joint state')}, closed"
    return SearchOutcome(None, what, words.length, 0, words.letters, closed=True)
