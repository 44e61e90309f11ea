"""`fsa2lrnn explain`: the properties of an automaton, assembled in `cli/explanation.py`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from fsa2lrnn import registry
from fsa2lrnn.cli import outputs, sources
from fsa2lrnn.cli.options import (
    AlphabetOption,
    CompletionOption,
    JsonOption,
    MaxBlockOption,
    Source,
    TokenShiftOption,
)


def explain(
    source: Source,
    family: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="only this family, or layer by name; repeatable")
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="only whether a layer that `export` knows can hold it; repeatable"),
    ] = None,
    certificates: Annotated[Path | None, typer.Option(help="write each answer's certificate into this folder")] = None,
    max_block: MaxBlockOption = None,
    token_shift: TokenShiftOption = True,
    draw: Annotated[
        Path | None, typer.Option(metavar="FILE", help="draw the cascade into this file (.svg, or .dot .gv)")
    ] = None,
    completion: CompletionOption = None,
    alphabet: AlphabetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe an automaton: its algebra, which families and layers can represent it, and at what cost."""
    outputs.check_drawing(draw)
    outputs.check_runs(certificates)
    machine = sources.read_machine(source, completion, alphabet)

    if layer:
        exported = registry.require("huggingface.folders", "--layer")

        exported.explain(machine, layer, certificates, as_json)
        return

    from fsa2lrnn.cli import cascades, console, explanation

    explanation.main(
        machine, family or [], certificates, cascades.CascadeRequest(max_block, token_shift, draw), as_json
    )
    if not as_json:
        typed = quote(source)
        console.then(f"fsa2lrnn compile {typed} -o m.safetensors --form auto", f"fsa2lrnn draw {typed} -o p.html")
