"""`fsa2lrnn run`: run a model on a word."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fsa2lrnn.cli import options, sources
from fsa2lrnn.errors import BudgetExceeded, counted

_WORD = (
    'letters with or without spaces between them, or a JSON list, \'["a b", "-"]\', if a letter contains spaces; '
    "- reads the word from standard input; write -- before a word that begins with -"
)

_STORED = 1 << 18  # letters of a trace that are stored for JSON


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
    scan: Annotated[
        options.Scan,
        typer.Option(help="how the recurrence is computed; walk and compose are for index tables, triton is for GPUs"),
    ] = "auto",
    dtype: options.DtypeOption = "float32",
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Run a model on a word, of any length if it is read from standard input."""
    from fsa2lrnn import symbols, tracing
    from fsa2lrnn.cli import console, words
    from fsa2lrnn.nn.model import decode

    sources.know_layers(layers)
    if (folder := sources.exported_folder(model)) is not None:
        from fsa2lrnn.cli import exported

        unsupported = {
            "--scan": scan != "auto", "--dtype": dtype != "float32", "--completion": completion, "--alphabet": alphabet,
            "--vectors": vectors,
        }  # fmt: skip
        exported.run(folder, word, trace, as_json, [name for name, is_given in unsupported.items() if is_given])
        return
    network = sources.model_of(model, dtype, completion, alphabet)
    pieces = [words.checked(word)] if word != "-" else words.read_pieces(sys.stdin.buffer)
    tokens = words.read(pieces, network.alphabet)
    length, output = 0, network.outputs[int(decode(network.initial_logits()[None])[0])]
    trail: list[tracing.Step] = []
    if trace or vectors:
        is_source = not model.endswith(options.MODEL_SUFFIX)
        machine = sources.read_machine(model, completion, alphabet) if is_source else None
        run_with_steps = tracing.with_vectors if vectors else tracing.with_states
        if not as_json:
            print(tracing.header(is_source))
        for length, step in enumerate(run_with_steps(network, tokens, machine, scan), start=1):
            output = step.output
            if not as_json:
                print(tracing.line(length, step, is_source))
            elif length > _STORED:
                raise BudgetExceeded(
                    f"a trace of more than {_STORED:,} letters is not kept in memory for JSON: use --trace without "
                    "--json, which prints it as it comes"
                )
            else:
                trail.append(step)
    else:
        for numbers in network.stream(tokens, scan):
            length, output = length + len(numbers), network.outputs[numbers[-1]]
    dtype_name = str(network.dtype).removeprefix("torch.")
    if as_json:
        value = {"length": length, "output": symbols.to_json(output), "method": scan, "dtype": dtype_name}
        console.emit_json({**value, **tracing.steps_json(trail)} if trace or vectors else value)
    elif not (trace or vectors):
        how = "" if scan == "auto" else f", {scan}"
        letters = counted(length, "letter") if length else "the empty word"
        console.out.print(f"[bold]{console.markup(symbols.show(output))}[/]  ({letters}, {dtype_name}{how})")
