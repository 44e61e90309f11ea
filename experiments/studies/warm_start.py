"""Training from compiled weights, from random ones, and `learn`: `python -m experiments.studies.warm_start`.

The tasks are arbiters of two to four clients (Fishell, Kouteili and Santolucito 2026, arXiv 2603.05694, in spirit). All
starts but "inferred" have the network of the compiled arbiter. Compiled weights are right at step 0; so the starts are
near them: compiled weights with noise, those of the arbiter that takes its clients in the opposite order, and those of
the machine that RPNI infers from 4ⁿ words. A run is tested on fresh words of 40 letters, and once right there, of 500;
it ends when it is right on both, or after `--steps`.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from experiments.studies.learn_and_prove import run_one
from experiments.tables import facts, markdown
from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.learning.merging import merge
from fsa2lrnn.learning.word_files import Data
from fsa2lrnn.nn.checkpoint import save
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.evaluate import count
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import TrainingRun

NAME, COMMAND = "warm_start", "python -m experiments.studies.warm_start"
CLIENTS, SEEDS, LENGTHS = (2, 3, 4), 5, (40, 500)
STARTS = ("random", "opposite", "inferred", "noise", "compiled", "learn")
NOISE = 0.1  # standard deviation, added to every weight
LETTERS = 10  # of a word from which a machine is inferred
TESTED, EVERY = 64, 25  # words per evaluation, and steps between two


def main(steps: Annotated[int, typer.Option(min=1, help="the most steps of a run")] = 2_000) -> None:
    """Run what is due, write results/warm_start.json after each run, print the table."""
    torch.set_num_threads(1)
    plan = [(n, start, seed) for seed in range(SEEDS) for n in CLIENTS for start in STARTS]

    def write(runs: list[Row]) -> None:
        results_io.write("warm_start", {"steps": steps, "runs": runs}, COMMAND)

    run_due(plan, ("clients", "start", "seed"), known_rows(NAME), partial(run, steps=steps), write)
    print(table())


def run(n: int, start: str, seed: int, steps: int) -> Row:
    """Return the steps until one run is right at each length, None if it never was."""
    row: Row = {"clients": n, "start": start, "seed": seed}
    if start == "learn":
        found = run_one(f"arbiter({n})", seed, 60.0)
        return row | {name: found[name] for name in ("proved", "steps", "processor_seconds")}
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "start.safetensors"
        save(first_model(n, start, seed), path)
        settings = Settings(f"task:arbiter({n})", start=str(path), learning_rate=5e-3, batch=32, seed=seed)
        training = TrainingRun(settings, Path(folder), resume=False)
        right: dict[str, int | None] = dict.fromkeys(map(str, LENGTHS))
        while True:
            for length in LENGTHS:
                tested = count(training.model, training.words, length, TESTED, training.testing)
                if tested.whole < tested.words:
                    break
                right[str(length)] = training.step if (step := right[str(length)]) is None else step
            if None not in right.values() or training.step >= steps:
                break
            for _ in range(EVERY):
                training.update()
    return row | {"right": right, "steps": training.step, "processor_seconds": time.process_time() - begun}


def first_model(n: int, start: str, seed: int) -> LRNN:
    """Return the model from which a run starts."""
    machine = zoo.arbiter(n)
    if start == "opposite":
        order = [machine.alphabet.index(str(letter)[::-1]) for letter in machine.alphabet]
        granted = [y if y == "none" else n - 1 - int(str(y)) for y in machine.outputs]
        machine = MooreMachine(machine.delta[order], granted, machine.start, machine.alphabet)
    generator = torch.Generator().manual_seed(seed)
    if start == "inferred":
        tokens = torch.randint(2**n, (4**n, LETTERS), generator=generator)
        of = {output: i for i, output in enumerate(dict.fromkeys(machine.outputs))}
        labels = [[of[machine.outputs[machine.start]], *(of[y] for y in machine.transduce(word))]
                  for word in ([machine.alphabet[a] for a in row] for row in tokens.tolist())]  # fmt: skip
        data = Data(machine.alphabet, tuple(of), tokens, torch.tensor(labels), *torch.full((2, 4**n), LETTERS))
        machine = merge(data)
    model = compile_machine(machine.minimise(), layout="dense")
    if start == "random":
        torch.manual_seed(seed)
        return LRNN(model.config)
    with torch.no_grad():
        for weight in model.parameters() if start == "noise" else ():
            weight += NOISE * torch.randn(weight.shape, generator=generator)
    return model


def table() -> str:
    """Return the median steps until right by arbiter and start, with the number of seeds that were."""
    document = results_io.read(NAME)
    runs: list[dict[str, Any]] = document["results"]["runs"]
    rows = []
    for n in CLIENTS:
        for start in STARTS:
            own = [run for run in runs if (run["clients"], run["start"]) == (n, start)]
            columns = [[run.get("right", {}).get(str(length)) for run in own] for length in LENGTHS]
            columns.append([run["steps"] if run.get("proved") else None for run in own])
            seconds = f"{median(run['processor_seconds'] for run in own):.1f}" if own else ""
            rows.append([f"{n}", start, *map(_cell, columns), seconds])
    heads = ["clients", "start", "right at 40", "right at 500", "proved", "processor seconds, median"]
    note = f"{len(runs)} runs of at most {document['results']['steps']:,} steps; –: none got there"
    return markdown(heads, rows) + facts(document, note)


def _cell(steps: list[int | None]) -> str:
    done = [x for x in steps if x is not None]
    return f"{median(done):g} ({len(done)} of {len(steps)})" if done else "–"


if __name__ == "__main__":
    script.run(main)
