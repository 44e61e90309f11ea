"""`fsa2lrnn convert`: convert an automaton from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsa2lrnn.cli import console, options, sources

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine


def convert(
    source: options.Source,
    output: Annotated[Path, typer.Option("--output", "-o", help=f"write the automaton here, {options.WRITTEN}")],
    minimise: Annotated[bool, typer.Option("--minimise", help="write the minimal automaton")] = False,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    kind: Annotated[options.MachineKind | None, typer.Option(help="how to read a DOT file that is ambiguous")] = None,
    separator: Annotated[str | None, typer.Option(help="what separates the letters of one label in DOT")] = None,
    whole_labels: Annotated[
        bool | None,
        typer.Option("--whole-labels/--words", help="whether a label of several characters in JFLAP is one letter"),
    ] = None,
    acceptor: Annotated[
        bool | None,
        typer.Option("--acceptor/--no-acceptor", help="whether an arc's fourth field in OpenFst text is a weight"),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write an automaton in another format, complete and deterministic, and report what is not preserved."""
    options.check_machine(output)
    how = {"kind": kind, "separator": separator, "whole_labels": whole_labels, "acceptor": acceptor}
    chosen = {name: value for name, value in how.items() if value is not None}
    machine = sources.read_machine(source, completion, alphabet, **chosen)

    from fsa2lrnn.automata.formats import write_file
    from fsa2lrnn.cli import evidence

    machine = machine.minimise() if minimise else machine
    write_file(machine, output)
    lost = _lost(machine, sources.read_machine(str(output)))
    if as_json:
        console.emit_json(
            {"machine": evidence.machine_json(machine), "saved": str(output), "read_back": lost or "equal"}
        )
        return
    back = f"with {lost}: .json keeps them" if lost else "as the same automaton"
    console.facts("machine", [*evidence.machine_rows(machine), ("saved", str(output)), ("reads back", back)])


def _lost(machine: MooreMachine, back: MooreMachine) -> str:
    """Return the symbols that a format turned into text, "" if the file holds an equivalent machine.

    Raises `NotExact` if the file is another machine even up to the names of symbols, which is a fault of the format.
    """
    from fsa2lrnn.automata.language import equivalent
    from fsa2lrnn.errors import NotExact

    if set(back.alphabet) == set(machine.alphabet) and equivalent(machine, back) is None:
        return ""
    if _nameless(machine) != _nameless(back):
        raise NotExact("what was written is read back as another automaton: write .json, and tell the authors")
    kinds = [("letters", machine.alphabet, back.alphabet), ("outputs", machine.outputs, back.outputs)]
    return " and ".join(name for name, ours, theirs in kinds if set(ours) != set(theirs)) + " as text"


def _nameless(machine: MooreMachine) -> MooreMachine:
    """Return the minimal machine with letters sorted by their texts and outputs numbered in the order of states."""
    from fsa2lrnn.automata.machine import MooreMachine

    order = sorted(range(len(machine.alphabet)), key=lambda a: str(machine.alphabet[a]))
    minimal = MooreMachine(machine.delta[order], machine.outputs, machine.start).minimise()
    number = {output: j for j, output in enumerate(dict.fromkeys(minimal.outputs))}
    return MooreMachine(minimal.delta, [number[output] for output in minimal.outputs], minimal.start)
