"""Each part of the recipe for refined labels left out in turn, on languages of MLRegTest.

python -m experiments.studies.mlregtest.candidates FOLDER
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from experiments.studies.learn_and_prove import learn_within
from experiments.studies.mlregtest.languages import names
from fsa2lrnn.automata.zoo.mlregtest import from_mlregtest
from fsa2lrnn.learning import attempt, learn, methods
from fsa2lrnn.learning.examples import FreshWords

ARMS: dict[str, tuple[dict[str, Any], Callable[[], Any] | None]] = {
    "the recipe": ({}, None),
    "outputs only, four heads, repair": ({"suffixes": 0}, None),
    "suffixes of one letter": ({"suffixes": 1}, None),
    "read-out at the rate of the tables": ({}, lambda: patch.object(attempt, "_SLOW", 1.0)),
    "read-out begins at random": ({}, lambda: patch.object(attempt, "_own_states", lambda *_: None)),
    "every position counts": ({}, lambda: patch.object(attempt, "_until_first_error", lambda labels, _: labels)),
    "letters apart": ({}, lambda: patch.object(methods, "share_cells", lambda delta: (np.arange(len(delta)),) * 2)),
    "uniform words": ({}, lambda: patch.object(FreshWords, "_fresh", lambda self, *of: [self._words.batch(*of)])),
}


def main(
    folder: Annotated[Path, typer.Argument(help="the folder of .att files")],
    languages: Annotated[int, typer.Option(min=1, help="languages, drawn across alphabets and classes")] = 7,
    seconds: Annotated[float, typer.Option(min=1, help="processor time of a run")] = 6.0,
) -> None:
    """Learn with each part left out and write experiments/results/mlregtest_candidates.json."""
    torch.set_num_threads(1)
    learn("task:parity")  # compiles what is compiled once
    drawn = names(folder, seed=30)[:39]  # one of each alphabet size and class
    plan = [(name, arm) for name in drawn[:: len(drawn) // languages][:languages] for arm in ARMS]

    def write(runs: list[Row]) -> None:
        command = "python -m experiments.studies.mlregtest.candidates FOLDER"
        results_io.write("mlregtest_candidates", {"arms": list(ARMS), "seconds": seconds, "runs": runs}, command)

    run_due(
        plan,
        ("name", "arm"),
        known_rows("mlregtest_candidates"),
        lambda name, arm: run_one(folder, name, arm, seconds),
        write,
    )


def run_one(folder: Path, name: str, arm: str, seconds: float) -> dict[str, Any]:
    """Return one run: proved or not, and what it took."""
    changes, patched = ARMS[arm]
    target, begun = from_mlregtest(name, folder), time.process_time()
    with ExitStack() as held:
        if patched is not None:
            held.enter_context(patched())
        learned = learn_within(target, 0, seconds, **changes)[0]
    spent = round(time.process_time() - begun, 3)
    return {
        "name": name,
        "arm": arm,
        "states": target.n_states,
        "proved": learned is not None and learned.is_proved,
        "processor_seconds": spent,
    }


if __name__ == "__main__":
    script.run(main)
