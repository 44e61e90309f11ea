"""All joint states of model and machine up to a length, bit for bit as the model's own step computes them.

This walk is the judge's own: it shares the model's step and the goal with the prover (`fsa2lrnn.judge.equivalence`),
and nothing of the walk there, so that a mistake in the one does not hide in the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.extraction import ModelSystem
from fsa2lrnn.judge.exactness import RoundingWatch
from fsa2lrnn.judge.goal import Goal
from fsa2lrnn.lrnn.model import LRNN


@dataclass(frozen=True)
class Explored:
    """What was found.

    Args:
        length: model and machine agree wherever it counts on all words of at most this length.
        pairs: different (model state, machine state) reached, those after which nothing counts left out.
        is_closed: no letter leads to a pair that was not seen: the agreement holds for words of every length.
        is_wrong: some word of length + 1 is answered wrongly.
        scans: the scans that compute what was stepped through.
    """

    length: int
    pairs: int
    is_closed: bool
    is_wrong: bool
    scans: tuple[str, ...]


def explore(model: LRNN, goal: Goal, budget: int, longest: int | None = None) -> Explored:
    """Breadth first, a letter at a time, until a word is wrong, the pairs close, or pairs or length run out.

    A length is done as a whole or not at all: `budget` is what the pairs may come to before the last one.
    """
    system, watch, n_letters = ModelSystem(model), RoundingWatch(model), len(goal.delta)
    rows, states, length, is_wrong = system.start(), np.array([goal.start]), 0, False
    seen = {(rows.tobytes(), goal.start)}
    while len(rows) and (longest is None or length < longest) and len(seen) * n_letters <= budget:
        with watch.looking():
            outputs, after = system.fan(rows, np.ones((len(rows), n_letters), bool))  # (N·|Σ|,), (N·|Σ|, D)
        to = goal.delta[:, states].T.reshape(-1)
        if goal.is_wrong(outputs, to).any():
            is_wrong = True
            break
        new: list[int] = []
        for i in np.flatnonzero(goal.hopeful[to]).tolist():
            pair = after[i].tobytes(), int(to[i])
            if pair not in seen:
                seen.add(pair)
                new.append(i)
        rows, states, length = after[new], to[new], length + 1
    scans = model.methods if watch.is_exact else ("sequential",)
    return Explored(length, len(seen), not len(rows), is_wrong, scans)
