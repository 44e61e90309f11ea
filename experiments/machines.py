"""Machines of the zoo as rows of results name them."""

from __future__ import annotations

from typing import Any

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.language import minimise


def of_zoo(source: str) -> tuple[MooreMachine, dict[str, Any]]:
    """The minimal machine of a task, and with what a row begins that speaks of it.

    >>> of_zoo("parity")[1]
    {'machine': 'parity', 'states': 2, 'letters': 2}
    """
    machine = minimise(zoo.from_task(source))
    return machine, {"machine": source, "states": machine.n_states, "letters": len(machine.alphabet)}
