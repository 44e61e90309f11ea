"""Enumeration of all joint states of model and machine up to a length, bit for bit as the model's step computes them.

`certify` and `check` use this walk. It shares the model's step and the specification with the prover
(`fsa2lrnn.verification.equivalence`) but not the prover's walk, so that a mistake in one walk is not repeated in the
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
from fsa2lrnn.verification.specification import Specification

ROUNDS = ("sequential",)
"""The scans of an enumeration in which something rounds: words read letter by letter, one at a time."""


MOST_ALONE = 1 << 14
"""The maximal number of letters read one at a time, for a model that rounds: some seconds."""
MOST_BYTES = 1 << 27
"""The maximal size of the visited pairs."""
_PAIR = 250  # bytes that Python takes for a pair, besides the state


@dataclass(frozen=True)
class EnumerationResult:
    """The result of an enumeration.

    Args:
        length: model and machine agree wherever outputs count on all words of at most this length.
        steps: the number of letters read, without those after which no output counts.
        pairs: the number of distinct pairs (model state, machine state) that these letters reach, the start included.
        is_closed: whether the reachable pairs are finitely many and were enumerated: they agree for every length.
        is_wrong: whether the model is wrong on some word of length + 1.
        scans: all scans of the model, in every shape of call, if rounding cannot change a visited state or output; else
            `ROUNDS`.
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
    """Explore pairs breadth first until a word is wrong, no pair is new, or budget, time or length run out.

    A length is explored completely or not at all: `allows` decides whether that many steps may be made in all. A model
    that rounds is stepped letter by letter, one word at a time, since it may round differently in a batch, at most
    `MOST_ALONE` times. Pairs are at most as many as fit in `MOST_BYTES`.
    """
    watch = RoundingWatch(model)
    result = _walked(ModelSystem(model, deadline=deadline), watch, goal, allows, longest)
    if watch.is_exact:
        return replace(result, scans=model.methods)
    alone = ModelSystem(model, at_once=1, deadline=deadline)
    return _walked(alone, watch, goal, lambda steps: steps <= MOST_ALONE and allows(steps), longest)


def _walked(
    system: ModelSystem, watch: RoundingWatch, goal: Specification, allows: Callable[[int], bool], longest: int | None
) -> EnumerationResult:
    rows, states, length, steps, is_wrong = system.start(), np.array([goal.start]), 0, 0, False
    visited = {(rows.tobytes(), goal.start)}
    while len(rows) and (longest is None or length < longest):
        live = goal.live[:, states].T  # (N, |Σ|)
        # A length is explored only if the budget covers all of it.
        more = int(live.sum())
        if not allows(steps + more) or (len(visited) + more) * (rows[0].nbytes + _PAIR) > MOST_BYTES:
            break
        steps += more
        try:
            with watch.looking():
                outputs, after = system.fan(rows, live)  # (M,), (M, D)
        except OutOfTime:
            break
        to = goal.delta[:, states].T[live]
        if goal.is_wrong(outputs, to).any():
            is_wrong = True
            break
        # Continue with the pairs that were not visited before.
        new: list[int] = []
        for i in range(len(to)):
            pair = after[i].tobytes(), int(to[i])
            if pair not in visited:
                visited.add(pair)
                new.append(i)
        rows, states, length = after[new], to[new], length + 1
        if not watch.is_exact and system.steps_in_batches:
            break
    return EnumerationResult(length, len(visited), steps, not len(rows), is_wrong, ROUNDS)
