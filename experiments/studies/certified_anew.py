"""Certified lengths of models trained anew: `python -m experiments.studies.certified_anew FOLDER…`.

The folders are those of `fsa2lrnn train --output FOLDER`, for models of one layer and with seeds that were not used
while `certify` was developed. A row contains a model's certified length N, accepted by `check`, and the shortest
counterexample that a search as long as that for the kept models finds. results/certified_anew.json is written after
each model, so that a second call continues where the first stopped.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from experiments import results_io, script
from experiments.resumable import known_rows, run_due
from experiments.studies.learned import SEARCH
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.extra.distributed.results import read_result
from fsa2lrnn.lrnn.checkpoint import load
from fsa2lrnn.lrnn.switched import as_tables
from fsa2lrnn.training import seeds
from fsa2lrnn.training.run_folder import MODEL, SETTINGS
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.verdicts import Refuted
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.falsify import falsify

COMMAND = "python -m experiments.studies.certified_anew"


def main(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER…", help="what `fsa2lrnn train --output` was given")],
) -> None:
    """Certify and falsify every ended run of the folders that has no row yet."""
    runs = {f"{run.parent.name}/{run.name}": run for folder in folders for run in sorted(folder.glob("seed-*"))}
    if not runs:
        raise CheckpointError(f"no seed-* in {', '.join(map(str, folders))}: give folders of fsa2lrnn train --output")

    def write(rows: list[dict[str, Any]]) -> None:
        results_io.write("certified_anew", {"models": rows, "median_ratio": ratio(rows)}, COMMAND)

    run_due(
        [(name,) for name in runs],
        ("model",),
        known_rows("certified_anew", "models"),
        lambda name: measured(name, runs[name]),
        write,
    )


def measured(name: str, run: Path) -> dict[str, Any]:
    """Return the row of one run."""
    result, settings = read_result(run / seeds.RESULT), Settings.from_json((run / SETTINGS).read_bytes())
    model, machine = as_tables(load(run / MODEL)), MooreMachine.from_source(settings.task)
    begun = time.process_time()
    certificate = certify(model, machine, ignore="lacked")
    check(certificate, model, "lacked")
    ended = time.process_time()
    verdict = falsify(model, machine, SEARCH, "lacked")
    at_500 = [x["last_position"]["accuracy"] for x in result["last_checkpoint"] if x["length"] == 500]
    return {
        "model": name, "task": settings.task, "seed": settings.seed, "step": result["step"],
        "right_at_500": at_500[0] if at_500 else None,
        "certified": certificate.horizon, "memory": certificate.memory,
        "counterexample": verdict.failure.to_json()["length"] if isinstance(verdict, Refuted) else None,
        "seconds": {"certify": round(ended - begun, 1), "falsify": round(time.process_time() - ended, 1)},
    }  # fmt: skip


def ratio(rows: list[dict[str, Any]]) -> float | None:
    """Return the median of N ÷ counterexample over the models that have both, None for none.

    >>> ratio([{"certified": 4, "counterexample": 8}, {"certified": 9, "counterexample": None}])
    0.5
    """
    ratios = [row["certified"] / row["counterexample"] for row in rows if row["certified"] and row["counterexample"]]
    return round(median(ratios), 3) if ratios else None


if __name__ == "__main__":
    script.run(main)
