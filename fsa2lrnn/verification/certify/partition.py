"""Search for the partition along which the boxes of joint states certify the most letters.

Words have one node if they lead to one state of the machine, have the same last letters, and if the model's states
after them are close. Words are tried shortest first; a word whose node is known is not continued.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsa2lrnn.deadline import WorkBudget
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.verification.extraction import ModelSystem
from fsa2lrnn.verification.joint_sets import MOST_LENGTHS, JointSets, check_bounded
from fsa2lrnn.verification.specification import Specification

_CLOSE = (0.5, 0.25, 0.1)  # largest differences of states within a node, relative to the first state's largest number
_MOST = 1 << 12  # nodes
_LONGEST = 16  # last letters
_PER_NODE = 1e5  # multiplications that a node costs to find
_OPERATIONS = 4  # of a check, that take as long as one multiplication of the budget


class Bounded(NamedTuple):
    """A partition, margins at the lengths 1, 2, …, and whether no output of longer words counts."""

    partition: np.ndarray
    margins: list[float]
    is_whole: bool


def best(model: LRNN, goal: Specification, effort: WorkBudget) -> Bounded | None:
    """Return the bounds of the partition that certifies the most, None if the budget or the time allows none.

    All degrees of closeness are tried, then the best one with more and more letters, as long as they help. Raises
    `UnsupportedFormat` for a model whose rounding is not bounded.
    """
    check_bounded(model)
    chosen: Bounded | None = None
    refusal: UnsupportedFormat | None = None
    # Under token shift a gate reads the letter before, so that a node has to know at least one letter.
    close, memory = _CLOSE, int(model.config.token_shift)
    while memory <= _LONGEST:
        parts: dict[bytes, tuple[float, np.ndarray]] = {}  # closeness may make no difference
        for each in close:
            partition = _partition(model, goal, each, memory, effort)
            if partition is not None:
                parts.setdefault(partition.tobytes(), (each, partition))
        tried = list[tuple[Bounded, float]]()
        for each, partition in parts.values():
            try:
                tried.append((_bounded(model, goal, partition, effort), each))
            except UnsupportedFormat as error:  # a finer partition may be too large
                refusal = error
        if not tried:
            if chosen is None and refusal is not None:
                raise refusal
            break
        longest, at = max(tried, key=lambda pair: (pair[0].is_whole, len(pair[0].margins)))
        # One more letter that does not help ends the search.
        if chosen is not None and len(longest.margins) <= len(chosen.margins):
            break
        chosen, close, memory = longest, (at,), memory + 1
        if chosen.is_whole:
            break
    return chosen


def _bounded(model: LRNN, goal: Specification, partition: np.ndarray, effort: WorkBudget) -> Bounded:
    """Return lower bounds of the margins, one per length, for a partition of the machine states, within `effort`.

    The last field of the result tells whether words of every later length count no more.
    """
    sets = JointSets(model, goal, partition)
    margins: list[float] = []
    walk = sets.margins()
    work = sets.work / _OPERATIONS
    while len(margins) < MOST_LENGTHS and effort.allows(work):
        effort.spend(work)
        margin = next(walk, None)
        if margin is None:
            return Bounded(partition, margins, True)
        if not margin > 0:
            break
        margins.append(margin)
    return Bounded(partition, margins, False)


def _partition(model: LRNN, goal: Specification, close: float, memory: int, effort: WorkBudget) -> np.ndarray | None:
    """Return a partition, int64 (|Σ|, n), None for too many nodes or if the budget or the time is used up."""
    system, n_letters = ModelSystem(model, deadline=effort.deadline), len(goal.delta)
    rows = system.start()
    first: list[np.ndarray] = [_numbers(system, rows)[0]]  # the first state found of each node
    keys: list[tuple[int, tuple[int, ...]]] = [(goal.start, ())]  # the machine's state and the last letters
    nodes, columns = {keys[0]: [0]}, [np.full(n_letters, -1)]
    frontier = [0]
    while frontier:
        live = goal.live[:, [keys[node][0] for node in frontier]].T
        if not effort.allows(_PER_NODE * live.sum()):
            return None
        effort.spend(_PER_NODE * live.sum())
        try:
            _, after = system.fan(rows, live)
        except OutOfTime:
            return None
        states, fresh = _numbers(system, after), list[int]()
        before = frontier
        frontier = []
        for i, (place, letter) in enumerate(zip(*(axis.tolist() for axis in np.nonzero(live)), strict=True)):
            state, word = keys[before[place]]
            key = int(goal.delta[letter, state]), ((*word, letter)[-memory:] if memory else ())
            # A word joins the first node of its key whose first state is close to its own.
            alike = nodes.setdefault(key, [])
            node = next((node for node in alike if _are_close(first[node], states[i], close)), None)
            if node is None:
                node = len(keys)
                if node == _MOST:
                    return None
                alike.append(node)
                keys.append(key)
                first.append(states[i])
                columns.append(np.full(n_letters, -1))
                frontier.append(node)
                fresh.append(i)
            columns[before[place]][letter] = node
        rows = after[fresh]
    return np.stack(columns, axis=1)


def _numbers(system: ModelSystem, rows: np.ndarray) -> np.ndarray:
    """Return the states of all layers in one row each: float64 (N, W)."""
    parts = [layer.x.detach().cpu().double().flatten(1).numpy() for layer in system.state_of(rows)]
    return np.concatenate(parts, axis=1)


def _are_close(first: np.ndarray, state: np.ndarray, close: float) -> bool:
    return bool(np.abs(first - state).max() <= close * np.abs(first).max())
