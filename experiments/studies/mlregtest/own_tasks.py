"""`learn` on this library's own tasks and random machines, compared with the recorded runs of the earlier recipe.

    python -m experiments.studies.mlregtest.own_tasks

Task by task with the same seed and the same limit of processor time; `learn_and_prove.json` has the earlier runs.
"""

from __future__ import annotations

from typing import Annotated

import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from experiments.studies.learn_and_prove import LARGE, LIMITS, LONG, TASKS, random_tasks, run_one
from fsa2lrnn.learning import learn

_KEPT = ("task", "seed", "target_states", "limit", "proved", "processor_seconds", "starts", "steps")


def main(
    machines: Annotated[int, typer.Option(min=0, help="random machines")] = 39,
    minutes: Annotated[float, typer.Option(min=0, help="after which no run begins")] = 20.0,
) -> None:
    """Learn the tasks and write experiments/results/mlregtest_own_tasks.json."""
    torch.set_num_threads(1)
    learn("task:parity")  # compiles what is compiled once
    tasks = (*TASKS, *random_tasks(machines), *LARGE, *LONG)
    plan = [(task, 0) for task in tasks]

    def write(runs: list[Row]) -> None:
        results_io.write("mlregtest_own_tasks", {"runs": runs}, "python -m experiments.studies.mlregtest.own_tasks")

    def row(task: str, seed: int) -> Row:
        run = run_one(task, seed, LIMITS.get(task, 60.0))
        return {key: run[key] for key in _KEPT}

    run_due(plan, ("task", "seed"), known_rows("mlregtest_own_tasks"), row, write, minutes)


if __name__ == "__main__":
    script.run(main)
