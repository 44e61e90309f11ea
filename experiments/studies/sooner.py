"""Time until a proof and until the published rule's best evaluation: `python -m experiments.studies.sooner`.

For each seed of the published rule in results/training.json, `learn` runs until its result is proved, and in the same
process some steps of the published rule are timed, both in processor time on one thread. The published rule's time is
the time per step times the number of steps after which 128 fresh words of length 500 were first all right at their end,
according to the record of its run, without the time of its evaluations. Neither time includes compilation.

The two results differ in kind: one is proved equal to the task on all words; the other has given 128 right answers, and
has known counterexamples (results/learned.json).
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from experiments.studies.learn_and_prove import learn_within
from fsa2lrnn.training.settings import preset
from fsa2lrnn.training.train import TrainingRun

NAME = "sooner"
COMMAND = f"python -m experiments.studies.{NAME}"
SECONDS = 180.0  # of a processor, for a proof
STEPS = {1: 100, 3: 10}  # that are timed, by layers
_WARM = 3


def main() -> None:
    """Time both on every seed without a row, and write experiments/results/sooner.json after each."""
    torch.set_num_threads(1)
    learn_within("task:parity", 0, SECONDS)  # compiles what is compiled once
    plan = [
        (kept["task"], seed["seed"], kept["preset"], seed)
        for kept in results_io.read("training")["results"]
        for seed in kept["seeds"]
    ]

    def write(rows: list[Row]) -> None:
        results_io.write("sooner", {"timed_steps": STEPS, "rows": rows, "tasks": summary(rows)}, COMMAND)

    known = known_rows(NAME, "rows")
    run_due(plan, ("task", "seed"), known, lambda task, _, preset, seed: row(task, preset, seed), write)


def row(task: str, released: str, kept: dict[str, Any]) -> dict[str, Any]:
    """Return one seed: seconds until a proof, and until the best evaluation; the ratio if both exist."""
    begun = time.process_time()
    found, _ = learn_within(task, kept["seed"], SECONDS)
    seconds = time.process_time() - begun if found is not None and found.is_proved else None
    best = kept["paper_protocol"]
    step = seconds_a_step(task, released, kept["seed"])
    reached = step * best["step"] if best["accuracy"] == 1 else None
    return {
        "task": task,
        "seed": kept["seed"],
        "proved_seconds": seconds,
        "released_steps": best["step"],
        "released_accuracy": best["accuracy"],
        "milliseconds_a_step": 1e3 * step,
        "released_seconds": reached,
        "ratio": reached / seconds if reached is not None and seconds is not None else None,
    }


def seconds_a_step(task: str, released: str, seed: int) -> float:
    """Return the median processor time of several steps of the published rule."""
    settings = preset(released, task, seed=seed)
    with TemporaryDirectory() as folder:
        run = TrainingRun(settings, Path(folder), resume=False)
        times = []
        for _ in range(STEPS[settings.layers] + _WARM):
            begun = time.process_time()
            run.update()
            times.append(time.process_time() - begun)
    return median(times[_WARM:])


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per task: medians over the seeds with both times, and the least ratio."""
    found = []
    for task in dict.fromkeys(line["task"] for line in rows):
        lines = [line for line in rows if line["task"] == task]
        both = [line for line in lines if line["ratio"] is not None]
        medians = {name: median(line[name] for line in both) if both else None for name in _MEDIANS}
        least = min((line["ratio"] for line in both), default=None)
        found.append({"task": task, "seeds": len(lines), "both": len(both), **medians, "least_ratio": least})
    return found


_MEDIANS = ("proved_seconds", "released_seconds", "ratio")


if __name__ == "__main__":
    script.run(main)
