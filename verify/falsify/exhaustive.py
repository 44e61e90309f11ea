"""All words, shortest first, as far as they can still fail."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.extract import Interner
from fsa2lrnn.extract.runner import pick, to_bytes
from verify.falsify.judge import Judge
from verify.falsify.tree import Tree
from verify.falsify.verdict import Budget, Clock, Outcome


def exhaustive(judge: Judge, budget: Budget, below: int, clock: Clock) -> Outcome:
    """Every word of less than `below` letters, until a level would hold more than `budget.words` joint states.

    Words into states from which nothing counts are left out, and of words that lead to the same bits of the model's
    state and the same state of the machine all but the first: what follows is the same. Where no new pair is reached
    the states have closed, and no word of any length fails.
    """
    states, q = judge.runner.start(), np.array([judge.start])
    tree, seen = Tree(), Interner()
    seen.number(_joint(states, q))
    length, letters, level = 0, 0, 0.0
    while len(q):
        n_next = int(judge.live[:, q].sum())
        growth = n_next / len(q)
        if n_next > budget.words or length + 1 >= below or level * growth > clock.left:
            finished = n_next > budget.words or length + 1 >= below
            return Outcome(None, f"all words, {len(q):,} joint states", length, len(q), letters, finished)
        begun = clock.passed
        live = judge.live[:, q].T  # (N, |Σ|)
        logits, after = judge.runner.fan(states, live)
        letters += len(logits)
        q_next = judge.delta[:, q].T[live]
        marks = judge.marks(logits, q_next)
        parents, by = np.nonzero(live)
        if (failure := judge.confirm_first(tree.longer(parents, by, marks.worst(8)))) is not None:
            return Outcome(failure, "all words", length, len(q), letters)
        before = len(seen)
        found, first = np.unique(seen.number(_joint(after, q_next)), return_index=True)
        new = first[found >= before]
        tree.grow(parents[new], by[new])
        states, q = pick(after, new), q_next[new]
        length, level = length + 1, clock.passed - begun
    return Outcome(None, f"all words: {len(seen):,} joint states, closed", length, 0, letters, closed=True)


def _joint(states: tuple[object, ...], q: np.ndarray) -> np.ndarray:
    tags = np.ascontiguousarray(q, np.int64).view(np.uint8).reshape(-1, 8)
    return np.concatenate([to_bytes(states), tags], axis=1)  # type: ignore[arg-type]
