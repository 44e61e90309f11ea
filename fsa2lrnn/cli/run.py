"""`fsa2lrnn run`: run a model on a word, and trace it letter by letter.

A trace has the output, the automaton's state, and the model's state vectors.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.errors import BudgetExceeded, InvalidWord, UnsupportedFormat, counted

if TYPE_CHECKING:
    import numpy as np

    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.nn.model import LRNN

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
    from fsa2lrnn.cli import typed
    from fsa2lrnn.nn.model import decode

    sources.know_layers(layers)
    pieces = [typed.checked(word)] if word != "-" else typed.read_pieces(sys.stdin.buffer)
    if (folder := sources.exported_folder(model)) is not None:
        ignored = {
            "--scan": scan != "auto", "--dtype": dtype != "float32", "--completion": completion, "--alphabet": alphabet,
            "--vectors": vectors,
        }  # fmt: skip
        sources.refuse_for_folder(folder, ignored)
        _run_folder(folder, pieces, trace, as_json)
        return
    network = sources.model_of(model, dtype, completion, alphabet)
    tokens = typed.read(pieces, network.alphabet)
    length, output = 0, network.outputs[int(decode(network.initial_logits()[None])[0])]
    trail: list[Step] = []
    if trace or vectors:
        is_source = not model.endswith(options.MODEL_SUFFIX)
        machine = sources.read_machine(model, completion, alphabet) if is_source else None
        if not as_json:
            print(header(is_source))
        steps = (with_vectors if vectors else with_states)(network, tokens, machine, scan)
        for length, step in enumerate(steps, start=1):
            output = step.output
            if not as_json:
                print(line(length, step, is_source))
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
    _tell(length, output, dtype_name, scan, trail if trace or vectors else None, as_json)


def _run_folder(folder: Path, pieces: Iterable[str], trace: bool, as_json: bool) -> None:
    """Run the model of a folder that `export` wrote on a word, piece by piece.

    Raises `UnsupportedFormat` for outputs that are letters, and `InvalidWord` for the empty word.
    """
    import torch

    from fsa2lrnn.cli import typed
    from fsa2lrnn.export import folder as folders

    model = folders.load(folder)
    alphabet, n = model.machine.alphabet, len(model.machine.alphabet)
    tracer = Tracer(alphabet, tuple(model.outputs), model.machine)
    cache, length, last, trail = None, 0, -1, list[Step]()
    if trace and not as_json:
        print(header(has_states=True))
    for tokens in tracer.read(typed.read(pieces, alphabet)):
        if not len(tokens):
            continue
        # The tokens of the model's vocabulary are the letters, the outputs, then padding.
        found, cache = folders.run(model, torch.from_numpy(tokens), cache=cache)
        if (least := int(found.min())) < n:
            raise UnsupportedFormat(f"{folder} put out the letter {alphabet[least]!r}: its weights were changed")
        if int(found.max()) - n >= len(model.outputs):
            raise UnsupportedFormat(f"{folder} put out padding: its weights were changed")
        length, last = length + len(tokens), int(found[-1]) - n
        if trace and as_json:
            trail += tracer.steps(found - n)
        elif trace:
            for k, step in enumerate(tracer.steps(found - n), start=length - len(found) + 1):
                print(line(k, step, has_states=True))
    if not length:
        raise InvalidWord("a language model puts out nothing before the first letter: give a word of one or more")
    _tell(length, model.outputs[last], model.dtype, model.layer, trail if trace else None, as_json)


def _tell(length: int, output: Hashable, dtype: str, method: str, trail: list[Step] | None, as_json: bool) -> None:
    """Print the last output of a run; `trail` is None without a trace, and a trace was printed already as text."""
    from fsa2lrnn import symbols

    if as_json:
        value = {"length": length, "output": symbols.to_json(output), "method": method, "dtype": dtype}
        console.emit_json(value if trail is None else {**value, **steps_json(trail)})
    elif trail is None:
        how = "" if method == "auto" else f", {method}"
        letters = counted(length, "letter") if length else "the empty word"
        console.out.print(f"[bold]{console.markup(symbols.show(output))}[/]  ({letters}, {dtype}{how})")


class Step(NamedTuple):
    """One letter of a trace.

    Args:
        letter, output: the letter, and the model's output after it.
        state: the automaton's state after it, a label or else a number; None without an automaton.
        vectors: the model's state after it, one row per layer, the state number for an index table; None if not
            requested.
    """

    letter: Hashable
    output: Hashable
    state: Hashable = None
    vectors: list[list[float]] | None = None


class Tracer:
    """A buffer that pairs the letters of a word with the model's outputs and the automaton's states.

    The model reads its letters through `read`, and `steps` takes its outputs. The buffer stores only the letters whose
    outputs are still missing.
    """

    def __init__(
        self, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...], machine: MooreMachine | None = None
    ) -> None:
        import numpy as np

        from fsa2lrnn import symbols

        self._alphabet, self._outputs, self._machine = alphabet, outputs, machine
        self._waiting = np.empty(0, np.int64)
        if machine is not None:
            self._delta = machine.delta[symbols.align(alphabet, machine.alphabet)]
            self._q = machine.start

    def read(self, pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the pieces of a word, int64 arrays of positions in the alphabet, unchanged; store their letters."""
        import numpy as np

        for piece in pieces:
            self._waiting = np.concatenate([self._waiting, piece])
            yield piece

    def steps(self, numbers: np.ndarray) -> list[Step]:
        """Return the next letters as steps; `numbers` are the indices of their outputs, int (N,)."""
        tokens, self._waiting = self._waiting[: len(numbers)], self._waiting[len(numbers) :]
        letters = [self._alphabet[a] for a in tokens]
        outputs = [self._outputs[j] for j in numbers]
        return [Step(*parts) for parts in zip(letters, outputs, self._states(tokens), strict=True)]

    def _states(self, tokens: np.ndarray) -> list[Hashable]:
        """Return the automaton's states after these letters, by label or number, and move on to the last."""
        if self._machine is None or not len(tokens):
            return [None] * len(tokens)
        from fsa2lrnn.walks import walk

        states = walk(self._delta, self._q, tokens)
        self._q = int(states[-1])
        labels = self._machine.labels
        return [int(q) if labels is None else labels[q] for q in states]


def with_states(
    model: LRNN, pieces: Iterable[np.ndarray], machine: MooreMachine | None = None, method: str = "auto"
) -> Iterator[Step]:
    """Yield the steps of a word, given in pieces, int64 arrays of positions in the alphabet; raise as `LRNN.stream`."""
    tracer = Tracer(model.alphabet, model.outputs, machine)
    for numbers in model.stream(tracer.read(pieces), method):
        yield from tracer.steps(numbers)


def with_vectors(
    model: LRNN, pieces: Iterable[np.ndarray], machine: MooreMachine | None = None, method: str = "auto"
) -> Iterator[Step]:
    """Yield the steps of a word with the model's state vectors, calling the model once per letter.

    The word is given in pieces, int64 arrays of positions in the alphabet. Complex entries become two real ones. Raises
    `UnsupportedFormat` for a model that is not causal, and `NotExact` for NaN logits.

    >>> import numpy as np
    >>> from fsa2lrnn import compile_machine, zoo
    >>> parity = zoo.parity()
    >>> [(step.output, step.vectors) for step in with_vectors(compile_machine(parity), [np.array([1, 1])])]
    [(True, [[0.0, 1.0]]), (False, [[1.0, 0.0]])]
    """
    import torch

    from fsa2lrnn.nn.model import decode

    if (reason := model.not_causal) is not None:
        raise UnsupportedFormat(reason)
    tracer, state = Tracer(model.alphabet, model.outputs, machine), model.initial_state()
    with torch.no_grad():
        for k, a in enumerate(a for piece in tracer.read(pieces) for a in piece.tolist()):
            logits, state = model.advance(torch.tensor([[a]], device=model.device), state, method)
            (step,) = tracer.steps(decode(logits[0], k).cpu().numpy())
            vectors = [torch.view_as_real(x) if x.is_complex() else x for x in (layer.x for layer in state)]
            yield Step(step.letter, step.output, step.state, [x.flatten().tolist() for x in vectors])


def header(has_states: bool) -> str:
    """Return the names of the columns that `line` prints, separated by tabs."""
    return "\t".join(["after", "letter", *(["state"] if has_states else []), "output"])


def line(k: int, step: Step, has_states: bool) -> str:
    """Return step number `k` as a line of text and a line per state vector, with columns separated by tabs."""
    from fsa2lrnn import symbols

    state = [symbols.show_label(step.state)] if has_states else []
    row = "\t".join([str(k), str(step.letter), *state, symbols.show(step.output)])
    vectors = [f"\tx{i}\t{' '.join(f'{x:.6g}' for x in row)}" for i, row in enumerate(step.vectors or [])]
    return "\n".join([row, *vectors])


def steps_json(steps: Iterable[Step]) -> dict[str, object]:
    """Return steps as a JSON object of lists: "letters", "trace" (the outputs), and "states" and "vectors" if any."""
    from fsa2lrnn import symbols

    steps = list(steps)
    value: dict[str, object] = {
        "letters": [symbols.to_json(step.letter) for step in steps],
        "trace": [symbols.to_json(step.output) for step in steps],
    }
    if any(step.state is not None for step in steps):
        value["states"] = [
            step.state if isinstance(step.state, int) else symbols.show_label(step.state) for step in steps
        ]
    if any(step.vectors is not None for step in steps):
        value["vectors"] = [step.vectors for step in steps]
    return value
