"""Exhaustive search: all words that can still fail, shortest first."""

from __future__ import annotations

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import counted
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.frontier import Frontier
from fsa2lrnn.verification.falsify.verdict import Budget, SearchOutcome


def exhaustive(comparison: ModelComparison, budget: Budget, below: int, clock: Deadline) -> SearchOutcome:
    """Search every word of fewer than `below` letters, until a level would hold more than `budget.words` joint states.

    Words into states from which no output counts are left out. Of words that lead to the same bits of the model's state
    and the same machine state, only the first is extended, since their continuations agree. If no new pair is reached,
    the reachable joint state set is finite, and no word of any length fails.
    """
    words = Frontier(comparison)
    level = 0.0  # seconds that the last length took
    while len(words):
        n_next = int(words.live.sum())
        is_at_limit = n_next > budget.words or words.length + 1 >= below
        if is_at_limit or level * n_next / len(words) > clock.left():
            what = f"all words, {counted(len(words), 'joint state')}"
            return SearchOutcome(None, what, words.length, len(words), words.letters, is_at_limit)
        begun = clock.passed()
        scored = words.scored()
        if scored.failure is not None:
            return SearchOutcome(scored.failure, "all words", words.length, len(words), words.letters)
        words.keep_new(scored.ahead, scored.q)
        level = clock.passed() - begun
    what = f"all words: {counted(words.seen, 'joint state')}, closed"
    return SearchOutcome(None, what, words.length, 0, words.letters, closed=True)
