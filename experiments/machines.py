"""Machines of the zoo as the first columns of rows of results."""

from __future__ import annotations

from typing import Any

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.language import minimise


def of_zoo(source: str) -> tuple[MooreMachine, dict[str, Any]]:
    """Return the minimal machine of a task, and the first columns of its row.

    >>> of_zoo("parity")[1]
    {'machine': 'parity', 'states': 2, 'letters': 2}
    """
    machine = minimise(zoo.from_task(source))
    return machine, {"machine": source, "states": machine.n_states, "letters": len(machine.alphabet)}
