"""All joint states of model and machine up to a length, bit for bit as the model's own step computes them.

This walk is the judge's own: it shares the model's step and the goal with the prover
(`fsa2lrnn.verification.equivalence`), and nothing of the walk there, so that a mistake in the one does not hide in the
other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import OutOfTime
from fsa2lrnn.extraction import ModelSystem
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.verification.exactness import RoundingWatch
from fsa2lrnn.verification.goal import Specification


@dataclass(frozen=True)
class EnumerationResult:
    """What was found.

    Args:
        length: model and machine agree wherever it counts on all words of at most this length.
        pairs: different (model state, machine state) reached, those after which nothing counts left out.
        steps: letters read in them, but those after which nothing counts.
        is_closed: no letter leads to a pair that was not seen: the agreement holds for words of every length.
        is_wrong: some word of length + 1 is answered wrongly.
        scans: all of the model's, in every shape of call, where rounding changes nothing that was seen; else
            "sequential", and words are read letter by letter, one alone.
    """

    length: int
    pairs: int
    steps: int
    is_closed: bool
    is_wrong: bool
    scans: tuple[str, ...]


def explore(
    model: LRNN,
    goal: Specification,
    allows: Callable[[int], bool],
    longest: int | None = None,
    deadline: Deadline = NEVER,
) -> EnumerationResult:
    """Breadth first, a letter at a time, until a word is wrong, the pairs close, or budget, time or length run out.

    A length is done as a whole or not at all: `allows` says whether so many steps may be made in all. A model
    that rounds is stepped letter by letter, one word alone, since it may round otherwise in a batch.
    """
    watch = RoundingWatch(model)
    found = _walked(ModelSystem(model, deadline=deadline), watch, goal, allows, longest)
    if watch.is_exact:
        return replace(found, scans=model.methods)
    return _walked(ModelSystem(model, at_once=1, deadline=deadline), watch, goal, allows, longest)


def _walked(
    system: ModelSystem, watch: RoundingWatch, goal: Specification, allows: Callable[[int], bool], longest: int | None
) -> EnumerationResult:
    """The walk, with the scan "sequential"."""
    rows, states, length, steps, is_wrong = system.start(), np.array([goal.start]), 0, 0, False
    seen = {(rows.tobytes(), goal.start)}
    while len(rows) and (longest is None or length < longest):
        live = goal.live[:, states].T  # (N, |Σ|)
        if not allows(steps + int(live.sum())):
            break
        steps += int(live.sum())
        try:
            with watch.looking():
                outputs, after = system.fan(rows, live)  # (M,), (M, D)
        except OutOfTime:
            break
        to = goal.delta[:, states].T[live]
        if goal.is_wrong(outputs, to).any():
            is_wrong = True
            break
        new: list[int] = []
        for i in range(len(to)):
            pair = after[i].tobytes(), int(to[i])
            if pair not in seen:
                seen.add(pair)
                new.append(i)
        rows, states, length = after[new], to[new], length + 1
        if not watch.is_exact and system.steps_in_batches:
            break
    return EnumerationResult(length, len(seen), steps, not len(rows), is_wrong, ("sequential",))
