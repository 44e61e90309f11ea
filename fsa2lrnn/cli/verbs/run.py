"""`fsa2lrnn run`: run a model on a word."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from fsa2lrnn.cli import options, sources

_WORD = (
    'letters with or without spaces between them, or a JSON list, \'["a b", "-"]\', if a letter contains spaces; '
    "- reads the word from standard input; write -- before a word that begins with -"
)


def run(
    model: options.ModelOrSource,
    word: Annotated[str, typer.Argument(metavar="WORD", help=_WORD)],
    trace: Annotated[
        bool,
        typer.Option(
            "--trace", help="print every letter, the automaton's state if the source names it, and the output"
        ),
    ] = False,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="print a trace with the model's own state after each letter")
    ] = False,
    scan: Annotated[options.Scan, typer.Option(help="how the recurrence is computed")] = "auto",
    dtype: options.DtypeOption = "float32",
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Run a model on a word, of any length if it is read from standard input."""
    from fsa2lrnn import streaming, tracing
    from fsa2lrnn.cli import console, words
    from fsa2lrnn.lrnn.model import decode

    sources.know_layers(layers)
    if (folder := sources.exported_folder(model)) is not None:
        from fsa2lrnn.extra.huggingface.commands import folders

        unsupported = {
            "--scan": scan != "auto", "--dtype": dtype != "float32", "--completion": completion, "--alphabet": alphabet,
            "--vectors": vectors,
        }  # fmt: skip
        folders.run(folder, word, trace, as_json, [name for name, is_given in unsupported.items() if is_given])
        return
    network = sources.model_of(model, dtype, completion, alphabet)
    pieces = [words.checked(word)] if word != "-" else streaming.read_pieces(sys.stdin.buffer)
    tokens = words.read(pieces, network.alphabet)
    if not (trace or vectors):  # the last output alone
        result = streaming.run(network, tokens, scan)
        if as_json:
            console.emit_json(streaming.result_json(network, result))
        else:
            console.out.print(streaming.result_text(network, result))
        return
    is_source = not model.endswith(options.MODEL_SUFFIX)
    machine = sources.read_machine(model, completion, alphabet) if is_source else None
    if not as_json:
        print(tracing.header(is_source))
    trail: list[tracing.Step] = []
    n_steps = 0

    def take(steps: Iterable[tracing.Step]) -> None:
        nonlocal n_steps
        for step in steps:
            n_steps += 1
            if not as_json:
                print(tracing.line(n_steps, step, is_source))
            elif n_steps <= streaming.LONG:
                trail.append(step)

    if vectors:  # one call of the model per letter
        last = network.outputs[int(decode(network.initial_logits()[None])[0])]
        take(tracing.with_vectors(network, tokens, machine, scan))
        result = streaming.StreamResult(n_steps, trail[-1].output if trail else last, [], f"{scan}, letter by letter")
    else:
        tracer = tracing.Tracer(network.alphabet, network.outputs, machine)
        result = streaming.run(network, tracer.read(tokens), scan, lambda numbers: take(tracer.steps(numbers)))
    if as_json:
        console.emit_json(streaming.result_json(network, result, trail))
