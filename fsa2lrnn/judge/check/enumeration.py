"""All joint states of model and machine up to a length, bit for bit as the model's own step computes them.

This walk is the judge's own: it shares the model's step and the goal with the prover (`fsa2lrnn.judge.equivalence`),
and nothing of the walk there, so that a mistake in the one does not hide in the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
        scans: all of the model's, in every shape of call, where nothing rounds that was seen; else "sequential", and
            words are read letter by letter, one alone.
    """

    length: int
    pairs: int
    is_closed: bool
    is_wrong: bool
    scans: tuple[str, ...]


def explore(model: LRNN, goal: Goal, budget: int, longest: int | None = None) -> Explored:
    """Breadth first, a letter at a time, until a word is wrong, the pairs close, or pairs or length run out.

    A length is done as a whole or not at all: `budget` is what the pairs may come to before the last one. A model that
    rounds is stepped letter by letter, one word alone, since it may round otherwise in a batch.
    """
    watch = RoundingWatch(model)
    found = _walked(ModelSystem(model), watch, goal, budget, longest)
    if watch.is_exact:
        return replace(found, scans=model.methods)
    return _walked(ModelSystem(model, at_once=1), watch, goal, budget, longest)


def _walked(system: ModelSystem, watch: RoundingWatch, goal: Goal, budget: int, longest: int | None) -> Explored:
    """The walk, with the scan "sequential"."""
    n_letters = len(goal.delta)
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
        if not watch.is_exact and system.steps_in_batches:
            break
    return Explored(length, len(seen), not len(rows), is_wrong, ("sequential",))
