"""Build the zoo's machines from text (`task:…`), and list examples for tests and demonstrations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo import groups, languages, paper, sampling, small_machines
from fsa2lrnn.errors import UnsupportedFormat, meant

TASKS: dict[str, Callable[..., MooreMachine]] = {
    task.__name__: task
    for task in (
        paper.sum_mod,
        paper.even_pair,
        paper.mod_arith,
        paper.subtraction,
        small_machines.parity,
        small_machines.even_pairs,
        small_machines.cycle_navigation,
        languages.tomita,
        languages.dyck,
        languages.ab_star,
        languages.contains,
        groups.group,
        small_machines.length_mod,
        small_machines.count_mod,
        small_machines.resettable_counter,
        small_machines.elevator,
        small_machines.remainder,
        small_machines.flip_flop,
        small_machines.shift_register,
        small_machines.cerny,
        small_machines.all_maps,
        small_machines.arbiter,
        sampling.random_dfa,
        sampling.random_moore,
    )
}
"""The functions of the zoo by name, which `task:NAME(…)` calls."""


class TaskFacts(NamedTuple):
    """The facts on an example: the number of states of its minimal machine, and the kind of its transition monoid.

    The kind is "group" if every letter permutes the states, "aperiodic" if no word permutes states in a cycle, else
    "mixed".
    """

    n_states: int
    kind: Literal["group", "aperiodic", "mixed"]


# Examples of every task as `from_task` reads them, the odd ones among them: one state, one letter, one bit, M = 2.
ZOO: dict[str, TaskFacts] = {
    "sum_mod(2)": TaskFacts(2, "group"),
    "sum_mod(3)": TaskFacts(3, "group"),
    "sum_mod(5)": TaskFacts(5, "group"),
    "sum_mod(12)": TaskFacts(12, "group"),
    "even_pair(2)": TaskFacts(5, "aperiodic"),
    "even_pair(5)": TaskFacts(11, "aperiodic"),
    "mod_arith(2)": TaskFacts(9, "mixed"),
    "mod_arith(3)": TaskFacts(19, "mixed"),
    "mod_arith(5)": TaskFacts(51, "mixed"),
    "mod_arith(5, completion=ignore)": TaskFacts(50, "mixed"),
    "mod_arith(5, completion=running)": TaskFacts(61, "mixed"),
    "mod_arith(5, completion=operator)": TaskFacts(75, "mixed"),
    "mod_arith(5, completion=eager)": TaskFacts(75, "mixed"),
    "mod_arith(5, completion=register)": TaskFacts(25, "mixed"),
    "mod_arith(4, completion=register)": TaskFacts(16, "mixed"),
    "subtraction(3)": TaskFacts(8, "mixed"),
    "subtraction(5)": TaskFacts(12, "mixed"),
    "subtraction(5, completion=ignore)": TaskFacts(11, "mixed"),
    "parity": TaskFacts(2, "group"),
    "even_pairs": TaskFacts(5, "aperiodic"),
    "cycle_navigation(5)": TaskFacts(5, "group"),
    "cycle_navigation(8)": TaskFacts(8, "group"),
    "tomita(1)": TaskFacts(2, "aperiodic"),
    "tomita(2)": TaskFacts(3, "aperiodic"),
    "tomita(3)": TaskFacts(5, "mixed"),
    "tomita(4)": TaskFacts(4, "aperiodic"),
    "tomita(5)": TaskFacts(4, "group"),
    "tomita(6)": TaskFacts(3, "group"),
    "tomita(7)": TaskFacts(5, "aperiodic"),
    "dyck(1, 4)": TaskFacts(6, "aperiodic"),
    "dyck(2, 3)": TaskFacts(16, "aperiodic"),
    "dyck(2, 5)": TaskFacts(64, "aperiodic"),
    "dyck(3, 2)": TaskFacts(14, "aperiodic"),
    "ab_star": TaskFacts(3, "aperiodic"),
    "contains(abaab)": TaskFacts(6, "aperiodic"),
    "group(S3)": TaskFacts(6, "group"),
    "group(S3, generators=all)": TaskFacts(6, "group"),
    "group(S4)": TaskFacts(24, "group"),
    "group(S5)": TaskFacts(120, "group"),
    "group(A4)": TaskFacts(12, "group"),
    "group(A5)": TaskFacts(60, "group"),
    "group(D4)": TaskFacts(8, "group"),
    "group(Q8)": TaskFacts(8, "group"),
    "group(Z60)": TaskFacts(60, "group"),
    "group(Z4xZ2)": TaskFacts(8, "group"),
    "group(Z2xZ3xS3)": TaskFacts(36, "group"),
    "length_mod(3)": TaskFacts(3, "group"),
    "length_mod(4, letters=a)": TaskFacts(4, "group"),
    "count_mod(4)": TaskFacts(4, "group"),
    "resettable_counter(3)": TaskFacts(3, "mixed"),
    "resettable_counter(5)": TaskFacts(5, "mixed"),
    "elevator(3)": TaskFacts(3, "aperiodic"),
    "elevator(6)": TaskFacts(6, "aperiodic"),
    "remainder(3)": TaskFacts(3, "group"),
    "remainder(6)": TaskFacts(6, "mixed"),
    "remainder(8)": TaskFacts(8, "aperiodic"),
    "flip_flop": TaskFacts(2, "aperiodic"),
    "shift_register(1)": TaskFacts(2, "aperiodic"),
    "shift_register(3)": TaskFacts(8, "aperiodic"),
    "shift_register(3, output=content)": TaskFacts(8, "aperiodic"),
    "cerny(3)": TaskFacts(3, "mixed"),
    "cerny(5)": TaskFacts(5, "mixed"),
    "all_maps(3)": TaskFacts(3, "mixed"),
    "all_maps(4)": TaskFacts(4, "mixed"),
    "arbiter(2)": TaskFacts(6, "mixed"),
    "arbiter(3, policy=priority)": TaskFacts(8, "aperiodic"),
    "random_dfa(1, 1, seed=0)": TaskFacts(1, "group"),
    "random_dfa(5, 2, seed=1, minimal=true)": TaskFacts(5, "mixed"),
    "random_dfa(12, 3, seed=2, minimal=true)": TaskFacts(12, "mixed"),
    "random_moore(8, 2, outputs=3, seed=3, minimal=true)": TaskFacts(8, "mixed"),
}
"""Examples by their source text, with the facts on each; tests check these."""

_CALL = re.compile(r"\s*(\w+)\s*(?:\((.*)\)\s*)?", re.DOTALL)
_ARGUMENT = re.compile(r"""\s*(?:(\w+)\s*=\s*)?("[^"]*"|'[^']*'|[^\s,=()"']+)\s*(?:,|$)""")
_CONSTANTS = {"true": True, "false": False, "none": None}


def from_task(source: str) -> MooreMachine:
    """Return the machine of a task written as a call: a name, then its parameters in brackets if it has any.

    Values are whole numbers, true, false, none, quoted text, or bare words, which are text too. No text is evaluated.

    Raises:
        UnsupportedFormat: if the text is not such a call, names no task (the nearest are suggested) or does not fit the
            task's parameters (its signature is shown). The task itself may raise its own errors.

    >>> from_task("mod_arith(5, completion=register)").n_states, from_task("group(Z5xZ3)").n_states
    (25, 15)
    """
    call = _CALL.fullmatch(source)
    if call is None:
        raise UnsupportedFormat(f"task {source!r} is not a call: write a task as mod_arith(5, completion=register)")
    task = task_named(call[1])
    positional, named = _arguments(call[2] or "", source)
    try:
        inspect.signature(task).bind(*positional, **named)
    except TypeError as error:
        raise UnsupportedFormat(f"task {source!r}: {error}: call it as {_signature(task)}") from None
    return task(*positional, **named)


def task_named(name: str) -> Callable[..., MooreMachine]:
    """Return the function of a task by name; raise `UnsupportedFormat`, which lists the names, if it is unknown."""
    if name not in TASKS:
        raise UnsupportedFormat(f"task {name!r} is not known: {meant(name, TASKS)}the tasks are {', '.join(TASKS)}")
    return TASKS[name]


def _arguments(text: str, source: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and named arguments of a task's call, read without evaluating Python."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    position = 0
    while text[position:].strip():
        argument = _ARGUMENT.match(text, position)
        if argument is None or (named and argument[1] is None) or argument[1] in named:
            raise UnsupportedFormat(
                f"task {source!r} cannot be read from {text[position:].strip()!r} on: give values separated by commas, "
                'then name=value, each name once; quote text that holds spaces, commas or brackets: letter="("'
            )
        if argument[1] is None:
            positional.append(_value(argument[2]))
        else:
            named[argument[1]] = _value(argument[2])
        position = argument.end()
    return positional, named


def _value(token: str) -> Any:
    if token[0] in "\"'":
        return token[1:-1]
    if re.fullmatch(r"-?[0-9]{1,18}", token):
        return int(token)
    return _CONSTANTS.get(token.lower(), token)


def _signature(task: Callable[..., MooreMachine]) -> str:
    parameters = inspect.signature(task).parameters.values()
    shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
    return f"{task.__name__}({', '.join(shown)})"
