"""`fsa2lrnn run`: a model on a word."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fsa2lrnn.cli import sources
from fsa2lrnn.cli.options import (
    AlphabetOption,
    CompletionOption,
    DtypeOption,
    JsonOption,
    LayersOption,
    RunnableModel,
    Scan,
)

_WORD = (
    'letters together, or separated by spaces; or a JSON list, \'["a b", "-"]\', for letters with spaces and the like; '
    "- reads it from standard input; write -- before a word that begins with -"
)


def run(
    model: RunnableModel,
    word: Annotated[str, typer.Argument(metavar="WORD", help=_WORD)],
    trace: Annotated[bool, typer.Option(help="the output after every letter, not only the last")] = False,
    scan: Annotated[Scan, typer.Option(help="how the recurrence is computed")] = "auto",
    dtype: DtypeOption = "float32",
    completion: CompletionOption = None,
    alphabet: AlphabetOption = None,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a model on a word, of any length when it comes from standard input."""
    from fsa2lrnn import streaming
    from fsa2lrnn.cli import console, words

    sources.know_layers(layers)
    if (folder := sources.exported_folder(model)) is not None:
        from fsa2lrnn.cli import exported

        given = {"--scan": scan != "auto", "--completion": completion, "--alphabet": alphabet}
        exported.run(folder, word, trace, as_json, [name for name, is_given in given.items() if is_given])
        return
    network = sources.model_of(model, dtype, completion, alphabet)
    pieces = [words.checked(word)] if word != "-" else streaming.read_pieces(sys.stdin.buffer)
    tokens = words.read(pieces, network.alphabet)
    result = streaming.run(network, tokens, scan, streaming.printer(network) if trace and not as_json else None)
    if as_json:
        console.emit_json(streaming.result_json(network, result, keep_trace=trace))
    elif not trace:
        console.out.print(streaming.result_text(network, result))
