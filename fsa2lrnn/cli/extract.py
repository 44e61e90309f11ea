"""`fsa2lrnn extract`: extract the automaton that a model computes exactly, or on short words."""

from __future__ import annotations

from typing import Annotated

import typer

from fsa2lrnn.cli import console, options, sources


def extract(
    model: options.ModelOrSource,
    output: options.MachineOutput = None,
    method: Annotated[
        options.ExtractMethod,
        typer.Option(help="closure: explore all states, finitely many; suffixes: evaluate short words"),
    ] = "closure",
    max_states: Annotated[
        int, typer.Option(min=1, help="the most states that are explored, or told apart by suffixes")
    ] = 100_000,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Extract the minimal automaton of a model: exactly, or from its outputs on short words."""
    options.check_machine(output)

    from fsa2lrnn.automata.formats import write_file
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.verification.extraction import extract as extract_machine
    from fsa2lrnn.verification.extraction import extract_learned

    sources.know_layers(layers)
    network = sources.model_of(model, completion=completion, alphabet=alphabet)
    found = None
    if method == "closure":
        machine = extract_machine(network, max_states)
    else:
        learned = extract_learned(network, max_classes=max_states)
        machine, found = learned.machine, evidence.extraction_json(learned)
    if output is not None:
        write_file(machine, output)
    if as_json:
        saved = str(output) if output else None
        facts = {"machine": evidence.machine_json(machine), "saved": saved}
        console.emit_json(facts if found is None else {**facts, "evidence": found})
        return
    rows = [*evidence.machine_rows(machine), *([] if found is None else evidence.extraction_rows(found))]
    console.facts("machine", [*rows, *([("saved", str(output))] if output else [])])
    if output is None and (table := evidence.transition_table(machine)) is not None:
        console.out.print(table)
