"""`fsa2lrnn explain`: the properties of an automaton, assembled in `cli/explanation.py`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from fsa2lrnn.cli import options, outputs, sources


def explain(
    source: options.Source,
    family: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="decide only this family or layer; repeatable")
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="decide only whether this external layer, a target of `export`, can represent it; repeatable",
        ),
    ] = None,
    certificates: Annotated[Path | None, typer.Option(help="write each answer's certificate into this folder")] = None,
    max_block: options.MaxBlockOption = None,
    token_shift: options.TokenShiftOption = True,
    draw: Annotated[
        Path | None, typer.Option(metavar="FILE", help="draw the cascade into this file (.svg, or .dot .gv)")
    ] = None,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    max_seconds: Annotated[
        float,
        typer.Option(
            "--max-seconds",
            min=0.1,
            help="time limit for the layers and the cascade; what is not decided by then is unknown",
        ),
    ] = 30.0,
    as_json: options.JsonOption = False,
) -> None:
    """Describe an automaton: its algebra, the families and layers that can represent it, and the cost of a network."""
    outputs.check(draw, "a drawing", ".svg", ".dot", ".gv")
    outputs.check_runs(certificates)
    machine = sources.read_machine(source, completion, alphabet)

    if layer:
        from fsa2lrnn.cli import exported

        exported.explain(machine, layer, certificates, as_json, max_seconds)
        return

    from fsa2lrnn.cli import console, explanation

    explanation.main(machine, family or [], certificates, as_json, max_block, token_shift, draw, max_seconds)
    if not as_json:
        typed = f"{quote(source)}{sources.repeated(completion, alphabet)}"
        console.then(f"fsa2lrnn compile {typed} -o m.safetensors --form auto", f"fsa2lrnn draw {typed} -o p.html")
