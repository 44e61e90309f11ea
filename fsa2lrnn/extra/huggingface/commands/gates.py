"""`fsa2lrnn gates`: the values of the gates of an external model, and whether it uses negative eigenvalues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsa2lrnn.cli import given, outputs
from fsa2lrnn.cli.options import JsonOption
from fsa2lrnn.errors import UnsupportedFormat

_FOLDER = (
    "a model of OLMo-Hybrid, Qwen3-Next, Qwen3.5, Mamba-2, RWKV-7 or PD-SSM, written by save_pretrained or `export`"
)


def gates(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=_FOLDER)],
    text: Annotated[
        Path | None,
        typer.Option(help="a text file, read by the folder's tokenizer, or as letters of an exported model"),
    ] = None,
    tokens: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="tokens to read in place of a text: 0,5,2")
    ] = None,
    window: Annotated[int, typer.Option(min=1, help="tokens of a text that are read from one start")] = 1_024,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write one histogram per head (.svg)")] = None,
    as_json: JsonOption = False,
) -> None:
    """Report the ranges of a model's gates per head, over a text or each token of its vocabulary.

    The model's own code runs. The eigenvalue is the least one of the matrix that multiplies the state at a token;
    parity and permutations need negative eigenvalues.
    """
    outputs.check(output, "the picture", ".svg")
    if text is not None and tokens is not None:
        raise UnsupportedFormat("--text and --tokens: give one of them")
    from fsa2lrnn.extra.huggingface.commands import folders as exported
    from fsa2lrnn.extra.huggingface.observed.read import encode, observe
    from fsa2lrnn.reading import read_text

    word = None if tokens is None else given.whole_numbers(tokens, "--tokens")
    read = word if text is None else encode(folder, read_text(text))
    exported.gates(observe(folder, read, window), output, as_json)
