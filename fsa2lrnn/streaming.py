"""Running a model along a word that need not fit in memory."""

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
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.extraction import extract
from fsa2lrnn.graph_kernels import walk
from fsa2lrnn.lrnn.model import LRNN, decode
from fsa2lrnn.multi_step import MultiStepTable
from fsa2lrnn.tracing import Step, steps_json

LONG = 1 << 18  # letters from which reading the transition table out of the model pays
_TABLE_STATES = 20_000
_PIECE = 1 << 20  # bytes read at once
_REPORT_SECONDS = 2.0


@dataclass(frozen=True)
class StreamResult:
    """What a word led to: its length, the last output, all outputs where they were kept, and how they were computed."""

    length: int
    output: Hashable
    trace: list[Hashable]
    method: str


def read_pieces(stream: IO[bytes], name: str = "standard input") -> Iterator[str]:
    """A stream of UTF-8 in pieces of bounded size; on a terminal's standard error it reports how far it has come.

    Raises `UnsupportedFormat` naming a byte that is no UTF-8 and its offset.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
    read, reported = 0, time.monotonic()
    while True:
        data = stream.read(_PIECE)
        kept, _ = decoder.getstate()  # the beginning of a character that the last piece cut
        try:
            piece = decoder.decode(data, final=not data)
        except UnicodeDecodeError as fault:
            offset = read - len(kept) + fault.start
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
    """Run `model` along a word that arrives in pieces, in memory that the length of the word does not change.

    A word longer than `LONG` is walked on the model's own transition table, if the model's states close (`extract`) and
    no scan was asked for by name; the table is exact, so the outputs are the model's. Where nobody wants the outputs on
    the way, several letters are taken at a time. Otherwise the scan runs, piece by piece, carrying its state.

    Args:
        tokens: positions of letters in the model's alphabet, int64 arrays (`symbols.encode_text`).
        sink: called with the output numbers of each piece; without it they are kept in `Result.trace`, unless the word
            is longer than `LONG`.
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
    """A result as a JSON object, with its steps where they are given.

    Raises `BudgetExceeded` for a word too long for all of its steps to have been kept.
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
    """A result in one line."""
    how = "" if result.method == "auto" else f", {result.method}"
    letters = "the empty word" if not result.length else f"{result.length:,} letter{'s' if result.length > 1 else ''}"
    return f"[bold]{symbols.show(result.output)}[/]  ({letters}, {str(model.dtype).removeprefix('torch.')}{how})"


def _table(model: LRNN) -> MooreMachine | None:
    """The machine that the model computes, None if its states do not close."""
    try:
        return extract(model, _TABLE_STATES)
    except (BudgetExceeded, UnsupportedFormat):  # of a layer of which nothing exact can be said
        return None


def _walk(
    machine: MooreMachine, symbols_in_order: Sequence[Hashable], pieces: Iterable[np.ndarray]
) -> Iterator[np.ndarray]:
    """Output numbers along a word."""
    number = {output: j for j, output in enumerate(symbols_in_order)}
    outputs = np.array([number[output] for output in machine.outputs])
    q = machine.start
    for tokens in pieces:
        if len(tokens):
            states = walk(machine.delta, q, tokens)
            q = int(states[-1])
            yield outputs[states]


def _leap(machine: MooreMachine, pieces: Iterable[np.ndarray]) -> StreamResult:
    """The last output alone, several letters at a time."""
    leaps, q, length = MultiStepTable.of(machine.delta), machine.start, 0
    for tokens in pieces:
        q = leaps.final(q, tokens)
        length += len(tokens)
    how = f"walked on the model's {machine.n_states:,}-state table, {leaps.m} letters at a time"
    return StreamResult(length, machine.outputs[q], [], how)
