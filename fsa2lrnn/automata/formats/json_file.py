"""Read and write this library's JSON, a versioned format that preserves symbols of every supported type and labels.

    {"format": "fsa2lrnn-machine", "version": 1, "alphabet": ["a", "b"], "outputs": [true, false], "start": 0,
     "delta": [[1, 0], [0, 1]], "labels": ["even", "odd"]}

`delta` has one row per letter with the number of the next state for each state; `labels` may be absent or null.
Symbols are written as `symbols.to_json` does: a tuple as `{"tuple": […]}`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, cast

from fsa2lrnn import symbols
from fsa2lrnn.automata.formats.graph import PROBLEMS_SHOWN, Problem, problem_report
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat
from fsa2lrnn.reading import parse_json, shown

FORMAT = "fsa2lrnn-machine"
VERSION = 1

MAX_TABLE_ENTRIES = 10_000_000  # each of them written down

_REQUIRED = ("alphabet", "outputs", "start", "delta")


def to_json(machine: MooreMachine) -> str:
    """Return a machine as JSON text, one row of the table per line.

    Labels that JSON cannot represent are written as text. Raises `UnsupportedFormat` for such letters and outputs.

    >>> m = MooreMachine([[1, 0]], [None, ("acc", 3)])
    >>> from_json(to_json(m)) == m
    True
    """
    value = to_value(machine)
    rows = ",\n".join(f"    {row}" for row in value.pop("delta"))
    lines = [f"  {json.dumps(name)}: {json.dumps(part)}," for name, part in value.items()]
    return "\n".join(["{", *lines, '  "delta": [', rows, "  ]", "}", ""])


def to_value(machine: MooreMachine) -> dict[str, Any]:
    """Return a machine as a JSON object, whose text `to_json` returns; raise `UnsupportedFormat` as it does."""
    labels = {} if machine.labels is None else {"labels": [label_to_json(label) for label in machine.labels]}
    return {
        "format": FORMAT,
        "version": VERSION,
        "alphabet": [symbols.to_json(letter) for letter in machine.alphabet],
        "outputs": [symbols.to_json(output) for output in machine.outputs],
        "start": machine.start,
        **labels,
        "delta": machine.delta.tolist(),
    }


def label_to_json(label: Hashable) -> Any:
    """Return a label as a JSON value (`symbols.to_json`), or as text if JSON cannot represent it."""
    try:
        return symbols.to_json(label)
    except UnsupportedFormat:
        return str(label)


def from_json(text: str, origin: str = "the JSON text") -> MooreMachine:
    """Return the machine of a JSON text, the inverse of `to_json`.

    Raises:
        UnsupportedFormat: if the text is JSON of another kind or of a newer version.
        InvalidMachine: if it is not JSON (naming the line), or describes no machine (naming all faults).
        BudgetExceeded: if the table has more than ten million entries.
    """
    try:
        value = parse_json(text, origin)
    except UnsupportedFormat as fault:
        raise InvalidMachine(str(fault)) from None
    return from_value(value, origin)


def from_value(value: object, origin: str = "the JSON value") -> MooreMachine:
    """Return the machine of a JSON object, the inverse of `to_value`; raise as `from_json` does."""
    if isinstance(value, dict) and cast("dict[str, Any]", value).get("format") == "fsa2lrnn-weighted":
        raise UnsupportedFormat(
            f"{origin} is a weighted automaton, where one without weights is asked for: `fsa2lrnn explain` and "
            "`fsa2lrnn compile` take it, and WeightedAutomaton.from_json reads it"
        )
    if not isinstance(value, dict) or cast("dict[str, Any]", value).get("format") != FORMAT:
        raise UnsupportedFormat(
            f'{origin} is JSON, but not a machine of ours: expected an object with "format": "{FORMAT}", as to_json '
            "writes it"
        )
    parts = cast("dict[str, Any]", value)
    version = parts.get("version")
    if type(version) is not int or version < 1:
        raise UnsupportedFormat(f'{origin}: "version" is {shown(version)}, expected {VERSION}: write the file again')
    if version > VERSION:
        raise UnsupportedFormat(
            f"{origin} has format version {shown(version)}, this fsa2lrnn reads up to {VERSION}: install a newer "
            "fsa2lrnn"
        )
    return _machine(parts, origin)


def _machine(value: dict[str, Any], origin: str) -> MooreMachine:
    """Return the machine of a JSON object, or raise `InvalidMachine` with every problem of its fields."""
    problems = [Problem(f'"{name}" is missing: add it') for name in _REQUIRED if name not in value]
    known = {"format", "version", "labels", *_REQUIRED}
    unknown = [name for name in value if name not in known]
    problems += [Problem(f"{shown(name)} is not known: remove it") for name in unknown[:PROBLEMS_SHOWN]]
    read = {name: _symbols(value, name, problems) for name in ("alphabet", "outputs", "labels")}
    delta = cast("list[Any]", value["delta"]) if isinstance(value.get("delta"), list) else None
    if delta is None or not all(isinstance(row, list) for row in delta):
        problems.append(Problem('"delta" is not a list of lists: give one list a letter, in it one number a state'))
    elif sum(len(row) for row in delta) > MAX_TABLE_ENTRIES:
        raise BudgetExceeded(f"{origin}: the table has more than {MAX_TABLE_ENTRIES:,} entries: minimise the machine")
    elif true := [a for a, row in enumerate(delta) if bool in set(map(type, row))]:  # numpy would take it for 1
        problems.append(Problem(f'"delta"[{true[0]}] holds true or false: give the number of a state'))
    elif all(name in value for name in _REQUIRED):
        try:
            machine = MooreMachine(delta, read["outputs"], value["start"], read["alphabet"], read["labels"] or None)
        except InvalidMachine as fault:
            problems.append(Problem(str(fault)))
        else:
            if not problems:
                return machine
    raise InvalidMachine(problem_report(origin, problems))


def _symbols(value: dict[str, Any], name: str, problems: list[Problem]) -> list[Hashable]:
    """Return the symbols under `name`; add problems for invalid ones, and replace each by a distinct object."""
    if value.get(name) is None:
        return []
    if not isinstance(value[name], list):
        problems.append(Problem(f'"{name}" is not a list: give one symbol each'))
        return []
    found: list[Hashable] = []
    for i, item in enumerate(cast("list[Any]", value[name])):
        try:
            found.append(symbols.from_json(item))
        except UnsupportedFormat as fault:
            found.append(object())
            if len(problems) < PROBLEMS_SHOWN:
                problems.append(Problem(f'"{name}"[{i}]: {fault}'))
    return found
