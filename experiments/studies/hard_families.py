"""Train hard scalar channels and hard reflections on named tasks, and record which trained networks are proved.

    python -m experiments.studies.hard_families --seeds 5

`learn` refuses a task before training if theory shows that the layer cannot represent it. Each run is written as soon
as it ends, and a run that is in the file is not done again. Time is processor time.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Any

import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.learning import learn, summary
from fsa2lrnn.extra.learning.theory import foresee
from fsa2lrnn.families import represent
from fsa2lrnn.families.verdicts import Impossibility

COMMAND = "python -m experiments.studies.hard_families"
FAMILIES = {"hard_channels": "diagonal[-1,1]", "hard_reflections": "householder"}
TASKS = (
    "parity", "sum_mod(2)", "flip_flop", "tomita(1)", "tomita(5)", "group(Z2xZ2)", "cycle_navigation(2)", "sum_mod(3)",
    "ab_star", "shift_register(2)", "group(S3)", "group(S3, transpositions)",
    "group(D4)", "group(S4, transpositions)", "tomita(2)", "tomita(4)", "tomita(6)", "cycle_navigation(5)",
    "dyck(1, 4)",
)  # fmt: skip
LIMIT = 30.0


class _OutOfTime(Exception):
    """Raised when the processor time of a run is used up."""


def main(
    seeds: Annotated[int, typer.Option(min=1, help="runs of each layer and task")] = 5,
    seconds: Annotated[float, typer.Option(min=1, help="processor time of a run")] = LIMIT,
) -> None:
    """Learn every task in either layer and write experiments/results/hard_families.json."""
    torch.set_num_threads(1)
    learn("task:parity", layer="hard_channels")  # compiles what is compiled once
    plan = [(layer, task, seed) for seed in range(seeds) for layer in FAMILIES for task in TASKS]
    asked, known = dict(Counter(f"{layer} {task}" for layer, task, _ in plan)), known_rows("hard_families")

    def write(runs: list[Row]) -> None:
        results_io.write("hard_families", {"limit": seconds, "asked": asked, "runs": runs}, COMMAND)

    of = ("layer", "task", "seed")
    run_due(plan, of, known, lambda layer, task, seed: run_one(layer, task, seed, seconds), write)


def run_one(layer: str, task: str, seed: int, seconds: float) -> dict[str, Any]:
    """Return one run: the prediction of theory, the end of the run, and its cost."""
    target = MooreMachine.from_source(f"task:{task}").minimise()
    found = foresee(target, layer)
    assert found is not None
    run: dict[str, Any] = {"layer": layer, "task": task, "seed": seed, "states": target.n_states}
    run |= {"theory": found.answer, "one_vector": one_vector(target, layer)}
    begun = time.process_time()

    def look(_: dict[str, Any]) -> None:
        if time.process_time() > begun + seconds:
            raise _OutOfTime

    try:
        learned = learn(f"task:{task}", layer=layer, seed=seed, steps=1_000_000, report=look)
    except NotExpressible as error:
        return run | {"end": "refused", "why": str(error)}
    except _OutOfTime:
        return run | {"end": "out of time", "processor_seconds": time.process_time() - begun}
    kept = summary(learned)
    end = kept["verdict"]["verdict"]
    return run | {"end": end, "processor_seconds": time.process_time() - begun, **kept}


def one_vector(machine: MooreMachine, layer: str) -> str:
    """Return whether the family represents the machine with one vector per state (T3, T7, T36)."""
    found = represent(machine, FAMILIES[layer], short_words=False)
    return "no" if isinstance(found, Impossibility) else found.answer


def table(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row per layer and task; medians over runs that ended in a proof."""
    rows: list[dict[str, Any]] = []
    for name, asked in results["asked"].items():
        layer, _, task = name.partition(" ")
        runs = [run for run in results["runs"] if (run["layer"], run["task"]) == (layer, task)]
        if not runs:
            continue
        ends = Counter(run["end"] for run in runs)
        proved = sorted((run["processor_seconds"], run["steps"]) for run in runs if run["end"] == "proved")
        middle = proved[(len(proved) - 1) // 2] if proved else (None, None)
        row = {"layer": layer, "task": task, "asked": asked, "runs": len(runs), "states": runs[0]["states"]}
        row |= {"theory": runs[0]["theory"], "one_vector": runs[0]["one_vector"], "proved": ends["proved"]}
        rows.append(row | {"refused": ends["refused"], "seconds": middle[0], "steps": middle[1]})
    return rows


if __name__ == "__main__":
    script.run(main)
