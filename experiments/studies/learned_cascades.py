"""Learned cascades: layers of (8, 8), distilled component by component or trained from scratch, then proved.

    python -m experiments.studies.learned_cascades

- "distilled": the cascade of the task's machine is distilled, layer by layer (`extra.learning.cascades`).
- "learned, distilled": the same with the machine that one layer has learned from words, so that all comes from words.
- "together": all layers at once from the task's outputs, words growing, from random, identity or permutation starts.
- "layer-wise": the same from the identity; each layer above the first starts after the steps of the layer below.

Each run is written as soon as it ends, and a run that is in the file is not repeated. Time is processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.extra.learning import learn, summary
from fsa2lrnn.extra.learning.cascades import distil_cascade
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.judging import LearningTarget
from fsa2lrnn.extra.learning.recipe import Recipe, recipe_for
from fsa2lrnn.extra.learning.run import LearnedCandidate, Record
from fsa2lrnn.extra.learning.whole import WholeRun

COMMAND = "python -m experiments.studies.learned_cascades"
LAYERS, BLOCKS = 3, (8, 8)
TASKS = ("mod_arith(5)", "mod_arith(3)", "mod_arith(2)", "even_pair(5)", "dyck(1, 4)", "group(S4)", "shift_register(5)")
STARTS = {"together": "random", "together, identity": "identity", "together, permutations": "permutations"}
SCRATCH = ("mod_arith(2)", "mod_arith(5)")
LIMIT = 20.0
_EACH = 400  # steps that a layer has before the next one begins


class _OutOfTime(Exception):
    """Raised when the processor time of a run is used up."""


class LayerWise(WholeRun):
    """A training in which layers start one after the other."""

    def _step(self, report: Callable[[Record], None] | None) -> LearnedCandidate | None:
        for number, layer in enumerate(self.attempt.model.layers):
            layer.requires_grad_(self.attempt.at.step >= number * _EACH)
        return super()._step(report)


def main(
    seeds: Annotated[int, typer.Option(min=1, help="runs of what is distilled; of the rest one a task")] = 3,
    seconds: Annotated[float, typer.Option(min=1, help="processor time of a run from scratch")] = LIMIT,
) -> None:
    """Run all ways and write experiments/results/learned_cascades.json."""
    torch.set_num_threads(1)
    distil_cascade("task:parity", 2, (2,))  # compiles what is compiled once
    asked, of, known = plan(seeds), ("way", "task", "seed"), known_rows("learned_cascades")

    def write(runs: list[Row]) -> None:
        results_io.write("learned_cascades", {"limit": seconds, "asked": len(asked), "runs": runs}, COMMAND)

    run_due(asked, of, known, lambda way, task, seed: run_one(way, task, seed, seconds), write)


def plan(seeds: int) -> list[tuple[str, str, int]]:
    """Return the runs in order."""
    distilled = [("distilled", task, seed) for seed in range(seeds) for task in TASKS]
    scratch = [(way, task, 0) for task in SCRATCH for way in (*STARTS, "layer-wise")]
    return [("learned, distilled", TASKS[0], 0), *distilled[: len(TASKS)], *scratch, *distilled[len(TASKS) :]]


def run_one(way: str, task: str, seed: int, seconds: float) -> dict[str, Any]:
    """Return one run: its end, its cost, and the length of words that it reached."""
    run: dict[str, Any] = {"way": way, "task": task, "seed": seed}
    begun, last = time.process_time(), dict[str, Any]()

    def look(record: dict[str, Any]) -> None:
        last.update(record)
        if time.process_time() > begun + seconds:
            raise _OutOfTime

    try:
        if "distilled" in way:
            teacher = learn(f"task:{task}", seed=seed).machine if way.startswith("learned") else None
            recipe = Recipe(rate=0.003, steps=2_000, seed=seed)
            found = distil_cascade(f"task:{task}", LAYERS, BLOCKS, teacher=teacher, recipe=recipe)
        elif way == "layer-wise":
            found = _layer_wise(f"task:{task}", seed, look)
            return run | {"end": found, "processor_seconds": time.process_time() - begun, **_reached(last)}
        else:
            found = learn(
                f"task:{task}", layers=LAYERS, heads=len(BLOCKS), block=max(BLOCKS), start=STARTS[way], seed=seed,
                first_length=3, steps=1_000_000, report=look,
            )  # fmt: skip
    except _OutOfTime:
        return run | {"end": "out of time", "processor_seconds": time.process_time() - begun, **_reached(last)}
    except (NotExpressible, BudgetExceeded) as error:
        return run | {"end": "failed", "why": str(error), "processor_seconds": time.process_time() - begun}
    kept = summary(found)
    batches = sum(int(record.get("batches", 0)) for record in found.trail)
    run |= {"end": kept["verdict"]["verdict"], "processor_seconds": time.process_time() - begun, "taught": batches}
    return run | {"blocks": [list(layer.block_sizes) for layer in found.model.recurrences], **kept}


def _layer_wise(source: str, seed: int, look: Callable[[Record], None]) -> str:
    machine = MooreMachine.from_source(source)
    examples = FreshWords(machine, "task", source)
    target = LearningTarget(examples.machine, examples.sampler, examples.outputs)
    recipe = recipe_for(
        None, layers=LAYERS, heads=len(BLOCKS), block=max(BLOCKS), start="identity", seed=seed, first_length=3,
        patience=_EACH * LAYERS + 700, steps=1_000_000,
    )  # fmt: skip
    found = LayerWise(recipe, examples, target, examples.machine.n_states).go(look)
    return "proved" if found is not None and found.holds else "not proved"


def _reached(last: dict[str, Any]) -> dict[str, Any]:
    return {"length": last.get("length"), "error": last.get("error"), "steps": last.get("step")}


def table(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row per way and task."""
    rows: list[dict[str, Any]] = []
    for way, task in dict.fromkeys((run["way"], run["task"]) for run in results["runs"]):
        runs = [run for run in results["runs"] if (run["way"], run["task"]) == (way, task)]
        proved = [run for run in runs if run["end"] == "proved"]
        seconds = sorted(run["processor_seconds"] for run in proved)
        row = {"way": way, "task": task, "runs": len(runs), "proved": len(proved)}
        row["seconds"] = seconds[(len(seconds) - 1) // 2] if seconds else None
        row["length"] = max((run["length"] for run in runs if run.get("length")), default=None)
        row["error"] = min((run["error"] for run in runs if run.get("error") is not None), default=None)
        rows.append(row | {"why": next((run["why"] for run in runs if "why" in run), "")})
    return rows


if __name__ == "__main__":
    script.run(main)
