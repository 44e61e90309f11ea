"""`fsa2lrnn run`: run a model on a word, and trace it letter by letter."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.errors import BudgetExceeded, InvalidWord, UnsupportedFormat, counted

if TYPE_CHECKING:
    import io

    import numpy as np

    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.export.folder import ExportedModel

_WORD = (
    "letters with or without spaces between them; - reads the word from standard input, and answers after each line; "
    "write -- before a word that begins with -"
)
_STORED = 1 << 18  # letters of a trace that are stored for JSON

Stream = Callable[[Iterable["np.ndarray"]], Iterator["np.ndarray"]]


def run(
    model: options.ModelOrSource,
    word: Annotated[str, typer.Argument(metavar="WORD", help=_WORD)],
    trace: Annotated[
        bool,
        typer.Option(
            "--trace", help="print every letter, the automaton's state if the source names it, and the output"
        ),
    ] = False,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Run a model on a word, or on the events of standard input, line by line, as they arrive.

    The word from standard input has any length; a line goes on where the one before it ended.
    """
    from fsa2lrnn import symbols

    if sources.is_model(word) and not sources.is_model(model):
        raise UnsupportedFormat(f"{word} is a model, and stands first: give MODEL, then WORD")
    sources.know_layers(layers)
    pieces = (
        [sources.checked(word)] if word != "-" else sources.read_pieces(cast("io.BufferedIOBase", sys.stdin.buffer))
    )
    used = _used(model, completion, alphabet)
    length, answered, output, trail = 0, -1, used.first, list[Step]()

    def answer() -> None:
        """Print the output after the letters so far."""
        nonlocal answered
        answered = length
        if as_json:
            console.emit_json({"length": length, "output": symbols.to_json(output), "dtype": used.dtype}, indent=None)
            return
        letters = counted(length, "letter") if length else "the empty word"
        where = ", ".join(filter(None, (letters, used.dtype, used.layer)))
        console.out.print(f"[bold]{console.markup(symbols.show(output))}[/]  ({where})")

    def lines() -> Iterator[str]:
        """Yield the text, and answer after each line: a piece is asked for only when the one before it has been run."""
        for piece in pieces:
            yield piece
            if piece.endswith("\n") and "\n" not in used.alphabet and (length or not used.layer):
                sys.stdout.flush() if trace else answer()

    numbers = symbols.encode_text(lines(), used.alphabet)
    if trace:
        if not as_json:
            print("\t".join(["after", "letter", *(["state"] if used.machine else []), "output"]))
        for length, step in enumerate(steps(used, numbers), start=1):
            output = step.output
            if not as_json:
                state = [symbols.show_label(step.state)] if used.machine else []
                print("\t".join([str(length), str(step.letter), *state, symbols.show(output)]))
            elif length > _STORED:
                raise BudgetExceeded(
                    f"a trace of more than {_STORED:,} letters is not kept in memory for JSON: use --trace without "
                    "--json, which prints it as it comes"
                )
            else:
                trail.append(step)
    else:
        for found in used.stream(numbers):
            length, output = length + len(found), used.outputs[found[-1]]
    if used.layer and not length:
        raise InvalidWord("a language model puts out nothing before the first letter: give a word of one or more")
    if trace and as_json:
        value: dict[str, object] = {"length": length, "output": symbols.to_json(output), "dtype": used.dtype}
        value["letters"] = [symbols.to_json(step.letter) for step in trail]
        value["trace"] = [symbols.to_json(step.output) for step in trail]
        if used.machine:
            states = (step.state for step in trail)
            value["states"] = [state if isinstance(state, int) else symbols.show_label(state) for state in states]
        console.emit_json(value)
    elif not trace and answered != length:
        answer()


class Used(NamedTuple):
    """What runs: its letters and outputs, the output before the first letter, its dtype, and the automaton if known.

    `stream` maps pieces of a word, int64 arrays of positions in the alphabet, to pieces of the numbers of its outputs.
    """

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    first: Hashable
    dtype: str
    machine: MooreMachine | None
    stream: Stream
    layer: str = ""  # of a folder


def _used(model: str, completion: options.Completion | None, alphabet: str | None) -> Used:
    """Return the model of a file, of a folder that `export` wrote, or of a source, which is compiled."""
    if (folder := sources.exported_folder(model)) is not None:
        from fsa2lrnn.export.folder import load

        sources.refuse_for_folder(folder, {"--completion": completion, "--alphabet": alphabet})
        exported = load(folder)
        machine, outputs = exported.machine, tuple(exported.outputs)
        stream = partial(_stream_of_folder, folder, exported)
        return Used(machine.alphabet, outputs, None, exported.dtype, machine, stream, exported.layer)
    from fsa2lrnn.nn.model import decode

    network = sources.model_of(model, completion=completion, alphabet=alphabet)
    machine = None if model.endswith(options.MODEL_SUFFIX) else sources.read_machine(model, completion, alphabet)
    first = network.outputs[int(decode(network.initial_logits()[None])[0])]
    dtype = str(network.dtype).removeprefix("torch.")
    return Used(network.alphabet, network.outputs, first, dtype, machine, network.stream)


def _stream_of_folder(folder: Path, model: ExportedModel, pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the numbers of a folder's outputs, piece by piece; raise `UnsupportedFormat` for outputs that are none."""
    import torch

    from fsa2lrnn.export.folder import run

    # The tokens of the model's vocabulary are the letters, the outputs, then padding.
    alphabet, cache = model.machine.alphabet, None
    for tokens in pieces:
        if not len(tokens):
            continue
        found, cache = run(model, torch.from_numpy(tokens), cache=cache)
        if (least := int(found.min())) < len(alphabet):
            raise UnsupportedFormat(f"{folder} put out the letter {alphabet[least]!r}: its weights were changed")
        if int(found.max()) - len(alphabet) >= len(model.outputs):
            raise UnsupportedFormat(f"{folder} put out padding: its weights were changed")
        yield (found - len(alphabet)).numpy()


class Step(NamedTuple):
    """One letter of a trace, the output after it, and the automaton's state: a label, else a number, None without."""

    letter: Hashable
    output: Hashable
    state: Hashable = None


def steps(used: Used, pieces: Iterable[np.ndarray]) -> Iterator[Step]:
    """Yield the steps of a word; pieces of outputs need not be those of the word."""
    from fsa2lrnn import symbols

    waiting = deque[int]()  # letters whose outputs are still missing

    def noted() -> Iterator[np.ndarray]:
        for piece in pieces:
            waiting.extend(piece.tolist())
            yield piece

    machine, q = used.machine, 0 if used.machine is None else used.machine.start
    place = [] if machine is None else symbols.align(used.alphabet, machine.alphabet)
    for numbers in used.stream(noted()):
        for number in numbers.tolist():
            a, state = waiting.popleft(), None
            if machine is not None:
                q = int(machine.delta[place[a], q])
                state = q if machine.labels is None else machine.labels[q]
            yield Step(used.alphabet[a], used.outputs[number], state)
