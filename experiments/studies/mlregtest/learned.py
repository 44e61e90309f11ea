"""`learn` on the languages of MLRegTest, with the machine as the source: which are proved, within how many seconds.

    python -m experiments.studies.mlregtest.learned FOLDER --minutes 45

Languages are taken in a stratified order until the minutes are over; one that has a row is not run again. Seconds are
processor time, so that what else the machine does counts little. The seed of every run is 0.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from experiments.studies.learn_and_prove import learn_within
from experiments.studies.mlregtest.languages import names
from experiments.studies.mlregtest.names import parse_name
from fsa2lrnn.automata.zoo.mlregtest import from_mlregtest
from fsa2lrnn.learning import learn


def main(
    folder: Annotated[Path, typer.Argument(help="the folder of .att files")],
    seconds: Annotated[float, typer.Option(min=1, help="processor time of a run")] = 60.0,
    minutes: Annotated[float, typer.Option(min=0, help="after which no run begins")] = 45.0,
    limit: Annotated[int, typer.Option(min=0, help="languages, 0 for all")] = 0,
) -> None:
    """Learn the languages of a folder and write experiments/results/mlregtest_learned.json."""
    torch.set_num_threads(1)
    learn("task:parity")  # compiles what is compiled once
    languages = names(folder)
    plan = [(name,) for name in languages[: limit or None]]

    def write(runs: list[Row]) -> None:
        if len(runs) % 10 == 0:
            keep(runs)

    def keep(runs: list[Row]) -> None:
        results = {"languages": len(languages), "limit": seconds, "runs": runs}
        results_io.write("mlregtest_learned", results, "python -m experiments.studies.mlregtest.learned FOLDER")

    known = known_rows("mlregtest_learned")
    keep(run_due(plan, ("name",), known, lambda name: run_one(folder, name, seconds), write, minutes))


def run_one(folder: Path, name: str, seconds: float) -> dict[str, Any]:
    """Return one run: proved or not, and what it took."""
    target = from_mlregtest(name, folder)
    begun = time.process_time()
    learned, last = learn_within(target, 0, seconds)
    row = {
        "name": name,
        "letters": len(target.alphabet),
        "class": parse_name(name).kind,
        "states": target.n_states,
        "proved": learned is not None and learned.is_proved,
        "processor_seconds": round(time.process_time() - begun, 3),
    }
    if learned is None:
        return row | {"starts": last["start"] + 1, "steps": last["step"], "length": last["length"]}
    return row | {"starts": learned.starts, "steps": learned.steps, "learned_states": learned.machine.n_states}


if __name__ == "__main__":
    script.run(main)
