"""Run a model along a word that need not fit in memory."""

from __future__ import annotations

import codecs
import io
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.extraction import extract
from fsa2lrnn.lrnn.model import LRNN, decode
from fsa2lrnn.multi_step import MultiStepTable, walk
from fsa2lrnn.tracing import Step, steps_json

LONG = 1 << 18  # the length in letters from which extracting the transition table is faster
_TABLE_STATES = 20_000
_PIECE = 1 << 20  # bytes per read
_REPORT_SECONDS = 2.0


@dataclass(frozen=True)
class StreamResult(Brief):
    """The result of a run: the word's length, its last output, all outputs (empty if not stored), and the method."""

    length: int
    output: Hashable
    trace: list[Hashable]
    method: str


def read_pieces(stream: IO[bytes], name: str = "standard input") -> Iterator[str]:
    """Yield the text of a UTF-8 stream in pieces; print the progress to standard error if that is a terminal.

    Raises `UnsupportedFormat` naming `name`, the invalid byte and its offset.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
    read, reported = 0, time.monotonic()
    while True:
        data = stream.read(_PIECE)
        incomplete, _ = decoder.getstate()  # the first bytes of a character that the last read cut
        try:
            piece = decoder.decode(data, final=not data)
        except UnicodeDecodeError as fault:
            offset = read - len(incomplete) + fault.start
            raise UnsupportedFormat(
                f"{name} is not UTF-8 (byte 0x{fault.object[fault.start]:02x} at offset {offset:,}): give it in that "
                "encoding"
            ) from None
        read += len(data)
        if piece:
            yield piece
        if not data:
            return
        if sys.stderr.isatty() and time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            print(f"\r{read:,} bytes read", end="", file=sys.stderr, flush=True)


def run(
    model: LRNN, tokens: Iterable[np.ndarray], method: str = "auto", sink: Callable[[np.ndarray], None] | None = None
) -> StreamResult:
    """Run a model along a word that arrives in pieces, in memory independent of its length; return the last output.

    A word of at least `LONG` letters is read on the model's exact transition table, if `extract` finds one and `method`
    is "auto". Otherwise the scan runs piece by piece.

    Args:
        tokens: the pieces, int64 arrays of positions in the model's alphabet (`symbols.encode_text`).
        method: the name of a scan, or "auto".
        sink: a function that is called with the output indices of each piece, int64 (T,). Without it, the outputs of a
            word shorter than `LONG` are stored in `StreamResult.trace`.
    """
    tokens = iter(tokens)
    head: list[np.ndarray] = []
    while sum(map(len, head)) < LONG and (piece := next(tokens, None)) is not None:
        head.append(piece)
    is_long = sum(map(len, head)) >= LONG
    machine = _table(model) if is_long and method == "auto" else None
    if machine is not None and sink is None:
        return _leap(machine, chain(head, tokens))
    how = method if machine is None else f"walked on the model's {machine.n_states:,}-state table"
    parts = chain(head, tokens)
    numbers = model.stream(parts, method) if machine is None else _walk(machine, model.outputs, parts)
    length, last, trace = 0, int(decode(model.initial_logits()[None])[0]), []
    for part in numbers:
        length += len(part)
        last = int(part[-1]) if len(part) else last
        if sink is not None:
            sink(part)
        elif not is_long:
            trace += [model.outputs[j] for j in part]
    return StreamResult(length, model.outputs[last], trace, how)


def result_json(model: LRNN, result: StreamResult, steps: Sequence[Step] | None = None) -> dict[str, Any]:
    """Return a result as a JSON object, with its steps unless these are None.

    Raises `BudgetExceeded` if there are fewer steps than letters, because the word was too long to store them.
    """
    value: dict[str, Any] = {
        "length": result.length,
        "output": symbols.to_json(result.output),
        "method": result.method,
        "dtype": str(model.dtype).removeprefix("torch."),
    }
    if steps is None:
        return value
    if len(steps) != result.length:
        raise BudgetExceeded(
            f"a trace of {result.length:,} letters is not kept in memory for JSON (up to {LONG:,} are): "
            "use --trace without --json, which prints it as it comes"
        )
    return {**value, **steps_json(steps)}


def result_text(model: LRNN, result: StreamResult) -> str:
    """Return a result as one line of text with Rich markup."""
    how = "" if result.method == "auto" else f", {result.method}"
    letters = "the empty word" if not result.length else f"{result.length:,} letter{'s' if result.length > 1 else ''}"
    return f"[bold]{symbols.show(result.output)}[/]  ({letters}, {str(model.dtype).removeprefix('torch.')}{how})"


def _table(model: LRNN) -> MooreMachine | None:
    try:
        return extract(model, _TABLE_STATES)
    except (BudgetExceeded, UnsupportedFormat):  # also for a layer without exact claims
        return None


def _walk(machine: MooreMachine, in_order: tuple[Hashable, ...], pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    number = {output: j for j, output in enumerate(in_order)}
    outputs = np.array([number[output] for output in machine.outputs])
    q = machine.start
    for tokens in pieces:
        if len(tokens):
            states = walk(machine.delta, q, tokens)
            q = int(states[-1])
            yield outputs[states]


def _leap(machine: MooreMachine, pieces: Iterable[np.ndarray]) -> StreamResult:
    table, q, length = MultiStepTable.of(machine.delta), machine.start, 0
    for tokens in pieces:
        q = table.final(q, tokens)
        length += len(tokens)
    how = f"walked on the model's {machine.n_states:,}-state table, {table.m} letters at a time"
    return StreamResult(length, machine.outputs[q], [], how)
