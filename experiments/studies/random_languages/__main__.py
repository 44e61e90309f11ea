"""Random languages × layers and rules × seeds: `python -m experiments.studies.random_languages`, hours of a core.

A call goes on where the last one stopped. Machines come in an order in which classes and sizes take turns, all layers
of one before the next, all first seeds before the second: whenever it stops, what has been run is balanced.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any

import torch
import typer

from experiments import results_io, script
from experiments.studies.mlregtest.subregular import is_definite
from experiments.studies.random_languages import show
from experiments.studies.random_languages.arms import ARMS, TRAINING
from experiments.studies.random_languages.cells import (
    LENGTHS,
    SEARCH,
    SECONDS,
    WORDS,
    constant_answer,
    run_cell,
    theory,
)
from experiments.studies.random_languages.machines import Drawn, drawn
from fsa2lrnn.automata.monoid import Action

NAME = "random_languages"
COMMAND = f"python -m experiments.studies.{NAME}"


def main(
    machines: Annotated[int, typer.Option(min=1, help="how many")] = 102,
    seeds: Annotated[int, typer.Option(min=1, help="of each cell")] = 2,
    hours: Annotated[float | None, typer.Option(min=0, help="after which no cell is begun; by default until done")] = (
        None
    ),
) -> None:
    """Run the cells that have not been run, and write experiments/results/random_languages.json after each.

    The figure beside it is drawn when the call ends.
    """
    torch.set_num_threads(1)
    path, begun = results_io.RESULTS / f"{NAME}.json", time.monotonic()
    known: dict[str, Any] = results_io.read(NAME)["results"] if path.exists() else {"machines": [], "runs": []}
    rows = {row["number"]: row for row in known["machines"]}
    runs = {(run["machine"], run["arm"], run["seed"]): run for run in known["runs"]}
    asked = {"machines": machines, "seeds": seeds, "arms": list(ARMS)}
    protocol = {**TRAINING, "lengths": LENGTHS, "words": WORDS, "learn_seconds": SECONDS}
    protocol["search_seconds"] = SEARCH.seconds
    titles = {name: ARMS[name].title for name in ARMS}

    def document() -> dict[str, Any]:
        of_cells = {"machines": list(rows.values()), "runs": list(runs.values())}
        return {"asked": asked, "protocol": protocol, "titles": titles, **of_cells}

    try:
        for found, arm, seed in plan(machines, seeds):
            if hours is not None and time.monotonic() - begun >= 3600 * hours:
                break
            if (found.number, arm, seed) in runs:
                continue
            if found.number not in rows:
                rows[found.number] = describe(found)
            run = runs[found.number, arm, seed] = run_cell(found, arm, seed)
            results_io.write("random_languages", document(), COMMAND)
            typer.echo(str(run))
    finally:
        if runs:
            show.figure(document(), results_io.RESULTS / f"{NAME}.svg")


def plan(machines: int, seeds: int) -> Iterator[tuple[Drawn, str, int]]:
    """Yield the cells in the order of the runs."""
    for seed in range(seeds):
        for number in range(machines):
            found = drawn(number)
            yield from ((found, arm, seed) for arm in ARMS)


def describe(found: Drawn) -> dict[str, Any]:
    """Return a machine's row: its properties, the accuracy of a constant answer, and theory's prediction per layer.

    The definite order is the number of last letters that determine the state, None if no number does.
    """
    machine = found.machine
    size = {"states": machine.n_states, "letters": len(machine.alphabet)}
    size |= {"definite_order": is_definite(Action.of(machine))[1]}
    constant = {f"constant_{length}": constant_answer(machine, length) for length in LENGTHS}
    return {"number": found.number, "kind": found.kind, **size, **constant, "theory": theory(found)}


if __name__ == "__main__":
    script.run(main)
