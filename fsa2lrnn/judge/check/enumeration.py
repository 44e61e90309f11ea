"""All joint states of model and machine up to a length, bit for bit as the model's own step computes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.extraction import Interner, ModelSystem
from fsa2lrnn.judge.exactness import RoundingWatch
from fsa2lrnn.judge.goal import DOES_NOT_COUNT, Target, joint
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


def explore(model: LRNN, goal: Target, budget: int, longest: int | None = None) -> Explored:
    """Breadth first, a letter at a time, until a word is wrong, the pairs close, or pairs or length run out.

    A length is done as a whole or not at all: `budget` is what the pairs may come to before the last one.
    """
    system, watch, seen = ModelSystem(model), RoundingWatch(model), Interner()
    rows, _ = system.initial()
    states, length, is_wrong = np.array([goal.start]), 0, False
    seen.number(joint(rows, states))
    while len(rows) and (longest is None or length < longest) and len(seen) * len(goal.delta) <= budget:
        with watch.looking():
            after, outputs = system.step(rows)  # (N, |Σ|, D), (N, |Σ|)
        to = goal.delta[:, states].T
        wanted = goal.wanted[to]
        if ((outputs != wanted) & (wanted != DOES_NOT_COUNT)).any():
            is_wrong = True
            break
        keep = goal.hopeful[to].reshape(-1)
        rows, states = after.reshape(-1, after.shape[-1])[keep], to.reshape(-1)[keep]
        before = len(seen)
        found, first = np.unique(seen.number(joint(rows, states)), return_index=True)
        new = first[found >= before]
        rows, states, length = rows[new], states[new], length + 1
    scans = model.methods if watch.is_exact else ("sequential",)
    return Explored(length, len(seen), not len(rows), is_wrong, scans)
