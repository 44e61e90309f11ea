"""`fsa2lrnn export`: an automaton as a model of a published layer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsa2lrnn.cli import outputs, sources
from fsa2lrnn.cli.options import AlphabetOption, CompletionOption, DtypeOption, JsonOption, Source
from fsa2lrnn.layers import EXPORTED


def export(
    source: Source,
    layer: Annotated[str, typer.Option(metavar="LAYER", help=f"a layer, or a model with it: {', '.join(EXPORTED)}")],
    output: Annotated[Path, typer.Option("--output", "-o", help="write the model into this folder")],
    dtype: DtypeOption = "float32",
    completion: CompletionOption = None,
    alphabet: AlphabetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an automaton as a whole model of Hugging Face's transformers, proved on its own code.

    `AutoModelForCausalLM.from_pretrained` loads the folder, and `fsa2lrnn run` and `fsa2lrnn verify` take it too.
    """
    outputs.check_runs(output)
    machine = sources.read_machine(source, completion, alphabet)

    from fsa2lrnn.extra.huggingface.commands import folders as exported

    exported.write(machine, layer, output, dtype, as_json)
