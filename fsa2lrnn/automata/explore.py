"""Machines from a step function on hashable states, to define a task in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded

State = TypeVar("State", bound=Hashable)


def explore(
    alphabet: Iterable[Hashable],
    start: State,
    step: Callable[[State, Hashable], State],
    output: Callable[[State], Hashable],
    max_states: int = 1_000_000,
) -> MooreMachine:
    """Return the machine of the states reachable from `start`, numbered breadth first and labelled by themselves.

    More than `max_states` reachable states raise `BudgetExceeded`.

    >>> explore("ab", 0, lambda q, a: (q + (a == "a")) % 3, lambda q: q == 0).n_states
    3
    """
    letters = tuple(alphabet)
    states: list[State] = [start]
    number: dict[State, int] = {start: 0}
    columns: list[list[int]] = []
    for state in states:
        column: list[int] = []
        for letter in letters:
            target = step(state, letter)
            if target not in number:
                if len(states) == max_states:
                    raise BudgetExceeded(
                        f"more than {max_states:,} states are reachable (the last: {target!r}): "
                        "is the task finite-state? raise max_states if it is"
                    )
                number[target] = len(states)
                states.append(target)
            column.append(number[target])
        columns.append(column)
    delta = np.array(columns, dtype=np.int64).reshape(len(states), len(letters)).T
    return MooreMachine(delta, [output(state) for state in states], 0, letters, labels=states)
