"""Selective layers: ordinary ones trained, then certified and refuted; hard ones learned, then proved.

    python -m experiments.studies.selective --minutes 25

Each run is written as soon as it ends, and a run that is in the file is not done again. Time is processor time.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from fsa2lrnn import certify, check, extract_learned, falsify, prove_equivalent, repair
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, Fsa2LrnnError, NotExact, OutOfTime
from fsa2lrnn.learning import learn
from fsa2lrnn.nn import LRNN, LRNNConfig
from fsa2lrnn.nn.layers import Shape, layer_named
from fsa2lrnn.training.settings import preset
from fsa2lrnn.training.train import train
from fsa2lrnn.verdicts import Refuted
from fsa2lrnn.verification.falsify import Budget

if TYPE_CHECKING:
    from fsa2lrnn.nn.gate import Gate

COMMAND = "python -m experiments.studies.selective"
STATE: dict[str, Any] = {"reads": "state", "conv": 0, "neg_eigval": True, "expand_v": 1.0}
TRAINED: list[tuple[str, dict[str, Any]]] = [
    ("gated_deltanet", STATE), ("deltaproduct", {**STATE, "factors": 2}), ("kda", STATE),
    ("mamba2", {"reads": "state", "conv": 0, "expand_v": 1.0}), ("rwkv7", {"reads": "state"}),
    ("pd_ssm", {"reads": "state"}), ("slice", {}), ("mamba3", {"reads": "state", "expand_v": 1.0}),
]  # fmt: skip
SECOND = [("mamba3", "sum_mod(2)", 1), ("mamba3", "sum_mod(3)", 1)]  # more seeds
CONSTRUCTED = {"sum_mod(5)": 5}  # by `rotations`
LONGEST, RANDOM_WORDS = 12_000, 8  # of the words that a constructed model runs
TRAINED_TASKS = ("sum_mod(2)", "sum_mod(3)", "group(S3)")
STEPS = 1_000
HARD = ("hard_pd_ssm", "hard_deltaproduct", "hard_slice")
HARD_TASKS = {"group(S3)": 3, "group(S4)": 4, "group(A5)": 5, "group(S5)": 5}  # and the points that it permutes
SETTINGS: dict[str, dict[str, Any]] = {
    "group(A5)": {"heads": 48, "hidden": 128},
    "group(S5)": {"heads": 96, "hidden": 128},
}
SEARCH, CERTIFY = 20.0, 60.0  # seconds of a counterexample search, and of that of a certificate


class _OutOfTime(Exception):
    """Raised when the processor time of a run is used up."""


def main(
    seeds: Annotated[int, typer.Option(min=1, help="runs of each cell")] = 5,
    trained_seeds: Annotated[int, typer.Option(min=0, help="runs of each cell of trained layers")] = 1,
    limit: Annotated[float, typer.Option(min=1, help="processor seconds of a run of learn")] = 900.0,
    minutes: Annotated[float, typer.Option(min=0, help="processor minutes after which no run starts")] = 1e9,
    tasks: Annotated[list[str] | None, typer.Option(help="tasks to learn; repeatable")] = None,
    layers: Annotated[list[str] | None, typer.Option(help="hard layers; repeatable")] = None,
) -> None:
    """Run what is due and write experiments/results/selective.json."""
    torch.set_num_threads(1)
    ends = time.process_time() + 60 * minutes

    def in_time(cells: list[tuple[Any, ...]]) -> Any:
        yield from (cell for cell in cells if time.process_time() < ends)

    of = ("layer", "task", "seed")
    plan = [(layer, task, seed) for seed in range(trained_seeds) for task in TRAINED_TASKS for layer, _ in TRAINED]
    plan += [*SECOND, *(("mamba3, constructed", task, 0) for task in CONSTRUCTED)] if trained_seeds else []
    run_due(in_time(plan), of, known_rows("selective", "trained"), run_trained, partial(write, "trained"))
    plan = [(layer, task, seed) for task in tasks or HARD_TASKS for seed in range(seeds) for layer in layers or HARD]
    run = partial(run_learned, limit=limit)
    run_due(in_time(plan), of, known_rows("selective", "learned"), run, partial(write, "learned"))


def write(part: str, rows: list[Row]) -> None:
    """Write the rows of a part, and those that another process has written since."""
    parts = {name: known_rows("selective", name) for name in ("trained", "learned")}
    by_cell = {(row["task"], row["layer"], row["seed"]): row for row in [*parts[part], *rows]}
    parts[part] = [by_cell[cell] for cell in sorted(by_cell)]
    results_io.write("selective", parts, COMMAND)


def run_trained(layer: str, task: str, seed: int) -> Row:
    """Train or construct a layer whose states are read; search for a counterexample, certify, extract and repair."""
    begun, source = time.process_time(), MooreMachine.from_source(f"task:{task}")
    row: Row = {"layer": layer, "task": task, "seed": seed}
    if layer == "mamba3, constructed":
        model, row["accuracy"] = rotations(CONSTRUCTED[task]), None
    else:
        model, row["accuracy"] = _trained(layer, task, seed)
    verdict = falsify(model, source, Budget(seconds=SEARCH))
    row["fails_at"] = len(verdict.word) if isinstance(verdict, Refuted) else None
    if row["accuracy"] is None and row["fails_at"] is None:
        row["fails_at"] = first_error(model, source)
    certificate = certify(model, source, seconds=CERTIFY)
    row["certified"] = certificate.horizon
    check(certificate, model)
    try:
        word = equivalent(extract_learned(model, horizon=8, seconds=20.0).machine, source)
        row["extracted"] = "the target" if word is None else f"another machine, first at {len(word)} letters"
    except (BudgetExceeded, NotExact, OutOfTime) as error:
        row["extracted"] = type(error).__name__
    try:
        repaired = repair(model, source, mode="dyadic")
        row["repaired"] = type(prove_equivalent(repaired.model, source, empty_word=False)).__name__
    except Fsa2LrnnError as error:
        row["repaired"] = f"{type(error).__name__}: {str(error)[:120]}"
    return row | {"processor_seconds": time.process_time() - begun}


def _trained(layer: str, task: str, seed: int) -> tuple[LRNN, float]:
    """Return a trained model and its accuracy."""
    settings = preset(
        "quick", f"task:{task}", layer=layer, options=dict(TRAINED)[layer], seed=seed, steps=STEPS, heads=2, block=4,
        connection="chain", normalisation="none", layer_norm=False, stop_at=None, schedule="cosine",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        outcome = train(settings, Path(folder))
    return outcome.model, outcome.records[-1]["accuracy"]


def rotations(n: int, decay: float = 0.01) -> LRNN:
    """Return a model of sum_mod(n) in one layer of Mamba-3: letter a turns a pair by 2πa/n.

    Δ is 1.25 for every letter, so that all states of a length decay alike, by exp(−1.25·decay) per letter.
    """
    machine, step = MooreMachine.from_source(f"task:sum_mod({n})"), 1.25
    layer = layer_named("mamba3").Config.of_shape(Shape(1, 2), {"reads": "state", "expand_v": 0.5})
    shape: dict[str, Any] = {"embedding_dim": n, "readout_hidden": 4, "connection": "chain", "layer_norm": False}
    model = LRNN(LRNNConfig(machine.alphabet, tuple(range(n)), (layer,), normalisation="none", **shape))
    turns = [2 * ((a + n // 2) % n - n // 2) / n for a in range(n)]  # in units of π
    angles = [2 * math.pi * j / n for j in range(n)]
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.embedding.get_parameter("weight").copy_(torch.eye(n))
        mamba, readout = model.recurrences[0], cast("Gate", model.readout).weights
        mamba.get_parameter("x0")[0, 0] = 1
        projected = mamba.get_submodule("in_proj").get_parameter("weight")
        _, _, dt, rate, _, angle = projected.split([1, 2, 1, 1, 1, 1])  # x, B, Δ, A, λ, angle
        dt.fill_(math.log(math.expm1(step)))
        rate.fill_(1 - 1 / decay)
        angle.copy_(torch.tensor([[math.atanh(turn / step) for turn in turns]]))
        readout.W1[:, :2] = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
        readout.W2.copy_(torch.tensor([[math.cos(t), -math.cos(t), -math.sin(t), math.sin(t)] for t in angles]))
    return model


def first_error(model: LRNN, machine: MooreMachine) -> int | None:
    """Return the length of the shortest wrong prefix of long test words: each letter repeated, and random letters."""
    n = len(machine.alphabet)
    drawn = torch.randint(n, (RANDOM_WORDS, LONGEST), generator=torch.Generator().manual_seed(0))
    words = torch.cat([torch.arange(n)[:, None].expand(-1, LONGEST), drawn])
    with torch.no_grad():
        given = model(words, "sequential").argmax(-1)
    lengths = list[int]()
    for word, row in zip(words.tolist(), given.tolist(), strict=True):
        expected = machine.transduce([machine.alphabet[a] for a in word])
        wrong = (k for k, (x, y) in enumerate(zip(row, expected, strict=True), 1) if model.outputs[x] != y)
        lengths += list(itertools.islice(wrong, 1))
    return min(lengths, default=None)


def run_learned(layer: str, task: str, seed: int, limit: float) -> Row:
    """Learn a task with a hard layer until it is proved."""
    begun = time.process_time()
    row: Row = {"layer": layer, "task": task, "seed": seed, "limit": limit, **SETTINGS.get(task, {})}

    def look(_: dict[str, Any]) -> None:
        if time.process_time() > begun + limit:
            raise _OutOfTime

    try:
        learned = learn(
            f"task:{task}", layer=layer, block=HARD_TASKS[task], seed=seed, steps=1_000_000, report=look,
            **SETTINGS.get(task, {}),
        )  # fmt: skip
    except _OutOfTime:
        return row | {"end": "out of time", "processor_seconds": time.process_time() - begun}
    end = "proved" if learned.is_proved else "not proved"
    took = {"steps": learned.steps, "starts": learned.starts, "processor_seconds": time.process_time() - begun}
    return row | {"end": end, **took}


if __name__ == "__main__":
    script.run(main)
