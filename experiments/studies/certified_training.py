"""Compare training with and without `drift_penalty`, the penalty on what `certify` bounds.

`python -m experiments.studies.certified_training`, ten seconds per run.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due, within
from experiments.studies.failure_law import shortest
from fsa2lrnn import certify
from fsa2lrnn.errors import Fsa2LrnnError, OutOfTime
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.training.drift import DriftPenalty
from fsa2lrnn.training.evaluate import evaluate
from fsa2lrnn.training.settings import preset
from fsa2lrnn.training.train import Diverged, train
from fsa2lrnn.verification.certify.work import SearchCutShort

NAME = "certified_training"
COMMAND = "python -m experiments.studies.certified_training"
TASKS = ("task:sum_mod(3)", "task:even_pair(3)", "task:parity")
WEIGHTS = (0.0, 1.0, 10.0)  # of the penalty
TRAINING: dict[str, Any] = {
    "steps": 400, "batch": 32, "length": 30, "block": 8, "heads": 4, "learning_rate": 2e-3, "test_length": 30,
    "test_words": 64, "evaluate_every": 400, "stop_at": None,
}  # fmt: skip
CERTIFY, _TEST_SEED = 3.0, 1 << 20


def main(
    seeds: Annotated[int, typer.Option(min=1, help="runs of each task and weight")] = 5,
    minutes: Annotated[float, typer.Option(min=0, help="minutes after which no run begins")] = 10.0,
) -> None:
    """Run what is due and write experiments/results/certified_training.json after each run."""
    torch.set_num_threads(1)
    plan = [(task, seed, weight) for seed in range(seeds) for task in TASKS for weight in WEIGHTS]

    def write(rows: list[Row]) -> None:
        results_io.write(
            "certified_training", {"training": TRAINING, "certify_seconds": CERTIFY, "runs": rows}, COMMAND
        )

    write(run_due(plan, ("task", "seed", "weight"), known_rows(NAME), run_one, write, minutes))


def run_one(task: str, seed: int, weight: float) -> Row:
    """Return the row of one run: its accuracy at 40 and 500 letters, N, and the shortest counterexample."""
    begun, row = time.process_time(), {"task": task, "seed": seed, "weight": weight}
    with TemporaryDirectory() as folder:
        settings = preset("quick", task, seed=seed, drift_penalty=weight, **TRAINING)
        try:
            outcome = train(settings, Path(folder))
        except Diverged:
            return row | {"end": "diverged"}
    for accuracy in evaluate(outcome.model, outcome.words, _TEST_SEED, (40, 500), 256):
        row[f"last_{accuracy.length}"] = accuracy.last / 256
    tables, machine = switched(outcome.model), settings.machine()
    words = outcome.words.batch(256, outcome.words.fit(settings.length), outcome.words.generator(_TEST_SEED)).tokens
    with torch.no_grad():
        row["penalty"] = float(f"{DriftPenalty(outcome.model, machine)(words).item():.3g}")
    row["fails_at"] = shortest(model := LRNN.from_affine(tables), machine)
    try:
        with within(3 * CERTIFY), warnings.catch_warnings():
            warnings.simplefilter("ignore", SearchCutShort)
            row["certified"] = certify(model, machine, ignore="lacked", seconds=CERTIFY).horizon
    except (OutOfTime, Fsa2LrnnError) as error:
        row |= {"certified": None, "why": f"{type(error).__name__}: {str(error)[:80]}"}
    return row | {"end": "steps", "processor_seconds": round(time.process_time() - begun, 1)}


if __name__ == "__main__":
    script.run(main)
