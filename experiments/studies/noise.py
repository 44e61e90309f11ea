"""Wrong labels: learning from given words by training and by merging: `python -m experiments.studies.noise`.

The study varies the share of wrong labels, the number of words, labels after every letter or only at the end, and the
machine. Each method receives the same words and the same limit of processor time. A call continues where the last one
stopped; the fastest method runs on all machines first, the others machine by machine. A run succeeds if the learned
machine equals the true one on every word.

Words have 0 to 40 letters, every length and letter equally likely. Each label is wrong with probability ε. Training and
the merger with a test receive ε. AALpy's mergers either merge whatever is consistent (RPNI, EDSM, which receive the
most frequent label of each prefix) or have their own test (ALERGIA, as a stochastic Mealy machine of which the
likeliest outputs are used; if words have one label, it is the output on a final letter). Training uses blocks of 24
states for every machine, and all machines have at most 12.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer
from aalpy.learning_algs import run_Alergia, run_EDSM, run_RPNI

from experiments import results_io, script
from experiments.resumable import within
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import complete, equivalent, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat
from fsa2lrnn.learning import Data, learn
from fsa2lrnn.learning.merging import labelled_prefixes, machine_of_aalpy, merge_noisy

NAME = "noise"
COMMAND = f"python -m experiments.studies.{NAME}"
WRONG, WORDS, LABELS = (0.0, 0.005, 0.025, 0.05, 0.1, 0.15), (50, 200, 2_000), ("dense", "last")
MACHINES = tuple(
    f"task:random_dfa({n}, {k}, seed={seed}, minimal=true)"
    for seed in (0, 1)
    for k in (2, 3)
    for n in (4, 6, 8, 10, 12)
)
LONGEST, BLOCK, SETTLE = 40, 24, 500
SECONDS = 20.0
_WRITTEN = 10.0  # seconds between two times that the file is written


class Cell(NamedTuple):
    """What a run is of, except its machine; `wrong` is the probability that a label is wrong."""

    method: str
    labels: str
    words: int
    wrong: float


def main(
    machines: Annotated[int, typer.Option(min=1, max=len(MACHINES), help="of each cell")] = len(MACHINES),
    seconds: Annotated[float, typer.Option(min=0.1, help="processor time of a run")] = SECONDS,
    method: Annotated[list[str] | None, typer.Option(metavar="NAME", help="these alone; repeatable")] = None,
) -> None:
    """Run what has not been run, and write experiments/results/noise.json on the way."""
    if unknown := [name for name in method or () if name not in METHODS]:
        raise UnsupportedFormat(f"method {unknown[0]!r} is not known: choose of {', '.join(METHODS)}")
    torch.set_num_threads(1)
    path = results_io.RESULTS / f"{NAME}.json"
    cells: dict[Cell, dict[str, list[Any]]] = {}
    if path.exists():
        for row in results_io.read(NAME)["results"]["cells"]:
            # Earlier files give the share of labels replaced by a draw from both outputs: half of those are wrong.
            wrong = row["wrong"] if "wrong" in row else row["noise"] / 2
            cells[Cell(row["method"], row["labels"], row["words"], wrong)] = row["runs"]
    _compile()
    written = time.monotonic()
    try:
        for machine, cell in plan(machines):
            runs = cells.setdefault(cell, {name: [] for name in ("machine", "exact", "states", "seconds", "end")})
            if machine in runs["machine"] or cell.method not in (method or METHODS):
                continue
            found = _inferred(cells, cell, machine) or run_one(MACHINES[machine], cell, seconds)
            for name, value in {"machine": machine, **found}.items():
                runs[name].append(value)
            typer.echo(f"{cell} {machine} {found}")
            if time.monotonic() - written > _WRITTEN:
                _write(cells, machines, seconds)
                written = time.monotonic()
    finally:
        _write(cells, machines, seconds)


def _write(cells: dict[Cell, dict[str, list[Any]]], machines: int, seconds: float) -> None:
    rows = [{**cell._asdict(), "runs": runs} for cell, runs in cells.items()]
    document = {"machines": MACHINES, "asked": machines, "limit": seconds, "cells": rows}
    results_io.write("noise", document, COMMAND)


def plan(machines: int) -> Iterator[tuple[int, Cell]]:
    """Yield machines and cells in the order of the runs: fewer words before more."""
    quick, *others = METHODS
    for methods in ((quick,), others):
        for machine in range(machines):
            for method, labels, wrong, words in product(methods, LABELS, WRONG, WORDS):
                yield machine, Cell(method, labels, words, wrong)


def _inferred(cells: dict[Cell, dict[str, list[Any]]], cell: Cell, machine: int) -> dict[str, Any] | None:
    """Out of time without a run, where a merger had no time for words of the same kind as few and as noisy or less so.

    More of them, or more wrong ones, leave it more states to compare, so it would only spend the limit again.
    """
    for words, wrong in product(WORDS, WRONG):
        easier = cell._replace(words=words, wrong=wrong)
        if cell.method == "train" or easier == cell or words > cell.words or not 0 < wrong <= cell.wrong:
            continue
        runs = cells.get(easier)
        ends = {} if runs is None else dict(zip(runs["machine"], runs["end"], strict=True))
        if ends.get(machine) == "out of time":
            return {"exact": False, "states": None, "seconds": None, "end": "out of time with easier words"}
    return None


def run_one(source: str, cell: Cell, seconds: float) -> dict[str, Any]:
    """Return whether the method identifies the machine, the states of its result, and its processor time."""
    machine = MooreMachine.from_source(source)
    data = draw(machine, cell.words, cell.wrong, cell.labels == "dense", MACHINES.index(source))
    begun = time.process_time()
    found, end = None, "done"
    try:
        with within(seconds):
            found = METHODS[cell.method](data, cell.wrong)
    except OutOfTime:
        end = "out of time"
    spent = time.process_time() - begun
    exact = found is not None and equivalent(found, machine) is None
    return {"exact": exact, "states": found and found.n_states, "seconds": round(spent, 3), "end": end}


def draw(machine: MooreMachine, n_words: int, wrong: float, is_dense: bool, seed: int) -> Data:
    """Draw words and their labels, each wrong with probability `wrong`; the words are the same for every `wrong`."""
    lengths_of, of_labels = (np.random.Generator(np.random.PCG64([seed, n_words, which])) for which in (0, 1))
    lengths = lengths_of.integers(LONGEST + 1, size=n_words)
    tokens = lengths_of.integers(len(machine.alphabet), size=(n_words, LONGEST))
    is_word = np.arange(LONGEST) < lengths[:, None]
    outputs = tuple(dict.fromkeys(machine.outputs))
    states = np.full((n_words, LONGEST + 1), machine.start)
    for k in range(LONGEST):
        states[:, k + 1] = machine.delta[tokens[:, k], states[:, k]]
    labels = np.array([outputs.index(output) for output in machine.outputs])[states]
    # A draw from all k outputs is another than the label with probability (k − 1)/k, each other one equally likely.
    redrawn = of_labels.random(labels.shape) < wrong * len(outputs) / (len(outputs) - 1)
    others = of_labels.integers(len(outputs), size=labels.shape)
    places = np.arange(LONGEST + 1)
    is_given = places <= lengths[:, None] if is_dense else places == lengths[:, None]
    labels = np.where(is_given, np.where(redrawn, others, labels), UNCOUNTED)
    numbers = (np.where(is_word, tokens, 0), labels, np.arange(1, n_words + 1), lengths)
    return Data(machine.alphabet, outputs, *map(torch.from_numpy, numbers))


def _trained(data: Data, wrong: float) -> MooreMachine:
    return learn(data, noise=wrong, block=BLOCK, settle=SETTLE, held_out=0, steps=1_000_000).machine


def _merged_by(run: Callable[..., Any]) -> Callable[[Data, float], MooreMachine | None]:
    """Return a merger of AALpy as a method, with the most frequent label of each prefix, the first one on ties."""

    def merged(data: Data, _wrong: float) -> MooreMachine | None:
        counted: dict[tuple[int, ...], Counter[int]] = {}
        for word, label in labelled_prefixes(data):
            counted.setdefault(word, Counter())[label] += 1
        pairs = [(word, labels.most_common(1)[0][0]) for word, labels in counted.items()]
        return machine_of_aalpy(run(pairs, "moore", print_info=False), data)

    return merged


def _alergia(data: Data, _wrong: float) -> MooreMachine:
    """Return ALERGIA's stochastic Mealy machine, with the likeliest output of each letter and its target."""
    is_dense = bool((data.labels != UNCOUNTED).sum(1).max() > 1)
    rows = zip(data.tokens.tolist(), data.labels.tolist(), data.lengths.tolist(), strict=True)
    end = -1  # the letter after which a word's one label is put out
    if is_dense:
        traces = [[x for k in range(n) for x in (word[k], labels[k + 1])] for word, labels, n in rows]
    else:
        traces = [[*(x for a in word[:n] for x in (a, None)), end, labels[n]] for word, labels, n in rows]
    found = run_Alergia([_pairs(trace) for trace in traces], "smm")
    usual = Counter(data.labels[data.labels != UNCOUNTED].tolist()).most_common(1)[0][0]
    first = Counter(label for label in data.labels[:, 0].tolist() if label != UNCOUNTED).most_common(1)

    def likeliest(state: Any, letter: int) -> tuple[Any, Any] | None:
        ways = state.transitions.get(letter)
        return max(ways, key=lambda way: way[2])[:2] if ways else None

    def output(state: Any, came: Any) -> int:
        if is_dense:
            return came
        ended = likeliest(state, end)
        return usual if ended is None else ended[1]

    start = (found.initial_state, output(found.initial_state, first[0][0] if first else usual))
    number, delta = {start: 0}, list[list[int | None]]()
    for state, _ in (waiting := [start]):
        row: list[int | None] = []
        for a in range(len(data.alphabet)):
            if (way := likeliest(state, a)) is None:
                row.append(None)
                continue
            node = (way[0], output(*way))
            if node not in number:
                number[node] = len(number)
                waiting.append(node)
            row.append(number[node])
        delta.append(row)
    outputs: list[Hashable] = [data.outputs[label] for _, label in waiting]
    return minimise(
        complete([list(row) for row in zip(*delta, strict=True)], outputs, 0, data.alphabet, completion="ignore")
    )


def _pairs(trace: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(trace[::2], trace[1::2], strict=True))


METHODS: dict[str, Callable[[Data, float], MooreMachine | None]] = {
    "test": merge_noisy,
    "alergia": _alergia,
    "rpni": _merged_by(run_RPNI),
    "edsm": _merged_by(run_EDSM),
    "train": _trained,
}


def _compile() -> None:
    """Compile what is compiled once, so that it is not part of a run's time."""
    data = draw(MooreMachine.from_source("task:parity"), 50, 0.0, is_dense=True, seed=0)
    for method in METHODS.values():
        method(data, 0.0)
    learn(data, noise=0.1, held_out=0, settle=1)


if __name__ == "__main__":
    script.run(main)
