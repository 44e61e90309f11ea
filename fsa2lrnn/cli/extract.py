"""`fsa2lrnn extract`: extract the automaton that a model computes exactly, or on short words."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fsa2lrnn.cli import options, outputs, sources


def extract(
    model: options.ModelOrSource,
    output: options.MachineOutput = None,
    method: Annotated[
        options.ExtractMethod,
        typer.Option(help="closure: explore all states, finitely many; suffixes, lstar: evaluate short words"),
    ] = "closure",
    max_states: Annotated[
        int, typer.Option(min=1, help="the most states that are explored, or told apart by suffixes")
    ] = 100_000,
    dtype: options.DtypeOption = "float32",
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Extract the minimal automaton of a model: exactly, or from its outputs on short words."""
    outputs.check_machine(output)

    from fsa2lrnn.automata.formats import write_file
    from fsa2lrnn.cli import console, evidence, sizes
    from fsa2lrnn.verification.extraction import extract as extract_machine
    from fsa2lrnn.verification.extraction import extract_learned

    sources.know_layers(layers)
    network = sources.model_of(model, dtype, completion, alphabet)
    evidence_json: dict[str, Any] | None = None
    if method == "closure":
        machine = extract_machine(network, max_states)
    else:
        learned = extract_learned(network, method, max_classes=max_states)
        machine, evidence_json = learned.machine, evidence.extraction_json(learned)
    if output is not None:
        write_file(machine, output)
    if as_json:
        saved = str(output) if output else None
        facts = {"machine": sizes.machine_json(machine), "saved": saved}
        console.emit_json(facts if evidence_json is None else {**facts, "evidence": evidence_json})
        return
    rows = [*sizes.machine_rows(machine), *(evidence.extraction_rows(evidence_json) if evidence_json else [])]
    console.facts("machine", [*rows, *([("saved", str(output))] if output else [])])
    if output is None and (table := sizes.transition_table(machine)) is not None:
        console.out.print(table)
