"""Training of external layers: `python -m experiments.studies.trained_released` (docs/reference/layer-answers.md).

Each cell is a layer, a task and a seed: one layer with our embedding and read-out, trained on words of 40 letters until
all of 128 fresh ones are right at their end, or for so many steps or seconds of processor time, and evaluated on fresh
words of 40, 500 and 5,000 letters. The table also states what is known without training: a construction or a refusal
(`fsa2lrnn.extra.huggingface.refuse`). The study continues where it stopped; with larger `--steps`
or `--seconds`, the cells that ended at these limits are trained anew.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from experiments import results_io, script
from experiments.studies.released_layers import MIXERS
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import MissingPackage
from fsa2lrnn.extra.huggingface.packages import pdssm
from fsa2lrnn.extra.huggingface.refuse import answer
from fsa2lrnn.lrnn import layer_named
from fsa2lrnn.training.evaluate import evaluate
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import Diverged, TrainingRun

NAME = "trained_released"
COMMAND = f"python -m experiments.studies.{NAME}"
TASKS = ("parity", "flip_flop", "sum_mod(3)", "sum_mod(5)", "group(S3)", "ab_star")
SEEDS = (0, 1)
LENGTHS, LETTERS = (40, 500, 5_000), 20_000
SETTINGS: dict[str, Any] = {
    "embedding_dim": 32, "heads": 2, "block": 16, "normalisation": "none", "optimiser": "adamw",
    "learning_rate": 1e-2, "gradient_clip": 1.0, "batch": 32, "length": 40, "evaluate_every": 50, "test_length": 40,
    "test_words": 128, "stop_at": 1.0,
}  # fmt: skip


def main(
    steps: Annotated[int, typer.Option(min=1, help="a cell at most")] = 2_000,
    seconds: Annotated[float, typer.Option(min=1, help="of a processor, a cell at most")] = 120.0,
) -> None:
    """Train what has not been, and write experiments/results/trained_released.json after each cell."""
    torch.set_num_threads(1)
    path = results_io.RESULTS / f"{NAME}.json"
    cells: list[dict[str, Any]] = results_io.read(NAME)["results"]["cells"] if path.exists() else []
    for seed in SEEDS:
        for task in TASKS:
            for layer in MIXERS:
                known = {"task": task, "layer": layer, "seed": seed}
                before = next((c for c in cells if {name: c[name] for name in known} == known), None)
                if before is not None and not goes_on(before, steps, seconds):
                    continue
                try:
                    if layer == "pd-ssm":
                        pdssm()
                    found = {**known, **cell(task, layer, seed, steps, seconds)}
                except MissingPackage as fault:
                    typer.echo(f"{layer}: {fault}")
                    continue
                cells = [c for c in cells if c is not before] + [found]
                results_io.write(
                    "trained_released", {"settings": SETTINGS, "known": known_of(), "cells": cells}, COMMAND
                )
                typer.echo(f"{task} {layer} seed {seed}: {found['end']} at {found['step']}, {found['last']}")


def goes_on(before: dict[str, Any], steps: int, seconds: float) -> bool:
    """Return whether a cell that ended at its limits is to be trained anew with larger ones."""
    return (before["end"] == "steps" and steps > before["steps"]) or (
        before["end"] == "seconds" and seconds > before["seconds"]
    )


def cell(task: str, layer: str, seed: int, steps: int, seconds: float) -> dict[str, Any]:
    """Return one training: how it ended, and how many fresh words of each length are right at their end."""
    kind = MIXERS[layer]
    name = f"{kind.__module__}:{kind.__name__}"
    layer_named(name)
    settings = Settings(task=f"task:{task}", layer=name, seed=seed, steps=steps, **SETTINGS)
    found: dict[str, Any] = {"steps": steps, "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder:
        run, begun = TrainingRun(settings, Path(folder), resume=False), time.process_time()
        try:
            while not run.is_done and time.process_time() - begun < seconds:
                run.update()
                if run.is_test_due:
                    run.test_and_save()
        except Diverged as fault:
            return {**found, "end": "diverged", "step": run.step, "why": str(fault), "learned": False, "last": {}}
    learned = run.is_good_enough
    end = "learned" if learned else "steps" if run.step >= steps else "seconds"
    lengths = LENGTHS if learned else LENGTHS[:1]
    with torch.no_grad():
        right = evaluate(run.model.eval(), run.words, seed, lengths, n_words=100, letters=LETTERS)
    last = {str(one.length): [one.last, one.words] for one in right}
    best = max((record["accuracy"] for record in run.records), default=None)
    return {**found, "end": end, "step": run.step, "best": best, "learned": learned, "last": last}


def known_of() -> dict[str, dict[str, Any]]:
    """Return the known answer for each task and layer, and the number of layers of its construction."""
    return {task: {layer: _known(task, layer) for layer in MIXERS} for task in TASKS}


def _known(task: str, layer: str) -> dict[str, Any]:
    said = answer(MooreMachine.from_source(f"task:{task}"), layer)
    # One layer is trained here: where no stack is known, a refusal of one layer alone is what counts.
    kind = "no" if said.plan is None and said.refusal is not None else said.kind
    return {"answer": kind, "layers": None if said.plan is None else said.plan.n_layers}


if __name__ == "__main__":
    script.run(main)
