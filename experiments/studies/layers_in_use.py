"""The table of layers in use for random machines: `python -m experiments.studies.layers_in_use`.

`decide` raises an error where a layer is said to represent what a layer that contains it does not; the study counts the
answers and the seconds per machine.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track

from experiments import results_io, script
from fsa2lrnn.automata import MooreMachine, classify
from fsa2lrnn.extra.huggingface.stacks import decide_stack
from fsa2lrnn.families.in_use import IN_USE, contradictions, decide

KINDS = ("any", "permutations", "monotone", "resets and identities")


def random_machine(kind: str, rng: np.random.Generator) -> MooreMachine:
    """Return an acceptor of 2 to 8 states whose 2 or 3 letters are of a kind; monotone maps make it aperiodic."""
    n, letters = int(rng.integers(2, 9)), int(rng.integers(2, 4))
    rows = {
        "any": lambda: rng.integers(n, size=n),
        "permutations": lambda: rng.permutation(n),
        "monotone": lambda: np.sort(rng.integers(n, size=n)),
        "resets and identities": lambda: np.arange(n) if rng.random() < 0.3 else np.full(n, rng.integers(n)),
    }
    outputs = rng.integers(2, size=n).astype(bool)
    return MooreMachine([rows[kind]() for _ in range(letters)], outputs.tolist())


def main(
    machines: Annotated[int, typer.Option(min=4, help="how many, a quarter of each kind")] = 200,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="time limit per machine, the default of `explain`")] = 30,
) -> None:
    """Decide the table for random machines, write results/layers_in_use.json, print the counts."""
    rng = np.random.default_rng(seed)
    counts = {name: {"one": Counter[str](), "stack": Counter[str]()} for name in IN_USE}
    seconds, n_contradictions, n_late = list[float](), 0, 0
    for i in track(range(machines), description="machines", console=Console(stderr=True), transient=True):
        machine = random_machine(KINDS[i % len(KINDS)], rng).minimise()
        begun = time.perf_counter()
        rows = decide(
            machine, classify(machine), decide_stack, max_seconds=max_seconds
        )  # raises an error for a contradiction
        n_contradictions += len(contradictions(rows))
        for name, row in rows.items():
            counts[name]["one"][row.one] += 1
            counts[name]["stack"][row.stack] += 1
        n_late += any(row.is_out_of_time for row in rows.values())
        seconds.append(time.perf_counter() - begun)
    facts = {
        "machines": machines,
        "seed": seed,
        "contradictions": n_contradictions,
        "max_seconds": max_seconds,
        "undecided_in_time": n_late,
        "seconds": {"median": round(statistics.median(seconds), 3), "most": round(max(seconds), 1)},
        "layers": {name: {what: dict(found) for what, found in of.items()} for name, of in counts.items()},
    }
    path = results_io.write("layers_in_use", facts, f"python -m experiments.studies.layers_in_use --seed {seed}")
    for name, of in counts.items():
        print(f"{IN_USE[name].title:26}", *(f"{what}: {dict(found)}" for what, found in of.items()))
    print(facts["seconds"], f"{n_late} machines with a cell undecided in time", path)


if __name__ == "__main__":
    script.run(main)
