"""`fsa2lrnn export`: an automaton as a model of a published layer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fsa2lrnn.cli import outputs, sources
from fsa2lrnn.cli.options import AlphabetOption, CompletionOption, JsonOption, Source
from fsa2lrnn.layers import EXPORTED


def export(
    source: Source,
    layer: Annotated[str, typer.Option(metavar="LAYER", help=f"a layer, or a model with it: {', '.join(EXPORTED)}")],
    output: Annotated[Path, typer.Option("--output", "-o", help="write the model into this folder")],
    dtype: Annotated[Literal["float32", "bfloat16"], typer.Option(help="arithmetic of the model")] = "float32",
    completion: CompletionOption = None,
    alphabet: AlphabetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an automaton as a whole model of transformers (for rwkv-7: of the package rwkv), proved on its own code.

    `fsa2lrnn run` and `fsa2lrnn verify` take the folder. `AutoModelForCausalLM.from_pretrained` loads it, except for
    rwkv-7.
    """
    outputs.check_runs(output)
    machine = sources.read_machine(source, completion, alphabet)

    from fsa2lrnn.cli import exported

    exported.write(machine, layer, output, dtype, as_json)
