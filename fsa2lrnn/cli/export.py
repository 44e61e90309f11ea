"""`fsa2lrnn export`: an automaton as a model of a published layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.files import check_folder
from fsa2lrnn.layers import EXPORTED, released_model

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine


def export(
    source: options.Source,
    layer: Annotated[str, typer.Option(metavar="LAYER", help=f"a layer, or a model with it: {', '.join(EXPORTED)}")],
    output: Annotated[Path, typer.Option("--output", "-o", help="write the model into this folder")],
    dtype: Annotated[Literal["float32", "bfloat16"], typer.Option(help="arithmetic of the model")] = "float32",
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write an automaton as a whole model of transformers (for rwkv-7: of the package rwkv), proved on its own code.

    `fsa2lrnn run` and `fsa2lrnn verify` take the folder. `AutoModelForCausalLM.from_pretrained` loads it, except for
    rwkv-7.
    """
    layer = released_model(layer)
    check_folder(output)
    machine = sources.read_machine(source, completion, alphabet)

    from fsa2lrnn.cli import evidence
    from fsa2lrnn.export.whole_model import export as export_machine

    try:
        written = export_machine(machine, layer, output, dtype)
    except NotExpressible as why:
        if not as_json:
            raise
        _tell_no(machine, layer, str(why))
        raise typer.Exit(options.NO) from why
    plan, model = written.plan, {"layer": layer, "how": written.plan.how, "dtype": dtype}
    if as_json:
        facts = {**model, "parameters": written.n_parameters, "saved": str(output)}
        machine_facts = evidence.machine_json(plan.machine)
        console.emit_json({"machine": machine_facts, "model": facts, "proof": written.verdict.to_json()})
        return
    console.facts("machine", evidence.machine_rows(plan.machine))
    console.facts("model", [*model.items(), ("parameters", f"{written.n_parameters:,}"), ("saved", str(output))])
    console.out.print(evidence.verdict_text(written.verdict, plan.machine.alphabet))


def _tell_no(machine: MooreMachine, layer: str, why: str) -> None:
    """Print as JSON the reason why a machine was not exported, with the answer on the layer."""
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.export.refuse import answer

    said = {**answer(machine, layer).to_json(), "evidence": console.message(why)}
    if said["answer"] == "yes":  # a plan that the layer's file could not write, which proves nothing
        said["answer"] = "unknown"
    console.emit_json({"machine": evidence.machine_json(machine), "model": {"layer": layer, "saved": None}, **said})
    console.error("no", why)
