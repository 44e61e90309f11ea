"""The summary of a sweep among the results: `python -m experiments.studies.sweeps NAME FOLDER`.

`experiments/sweeps/NAME.toml` is the sweep and FOLDER where it ran: `fsa2lrnn sweep experiments/sweeps/NAME.toml -o
FOLDER`. The cells go to results/sweep_NAME.json, beside the sweep itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from experiments import results_io, script
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.training.grid import Sweep, read_sweep
from fsa2lrnn.training.sweep import SUMMARY, table

SWEEPS = Path(__file__).parent.parent / "sweeps"


def main(
    name: Annotated[str, typer.Argument(metavar="NAME", help="of experiments/sweeps/NAME.toml")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="where it ran")],
) -> None:
    """Read the summary of a sweep, write results/sweep_NAME.json, print the table."""
    values = read_sweep(SWEEPS / f"{name}.toml")
    cells = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    sweep = Sweep.from_dict(values)
    wanted = list(dict.fromkeys((trial.task, trial.network, trial.setting) for trial in sweep.trials))
    if [(cell["task"], cell["network"], cell["setting"]) for cell in cells] != wanted:
        raise UnsupportedFormat(f"{folder} holds other cells than {name}.toml asks for: run that sweep there first")
    results = {"sweep": values, "cells": cells}
    path = results_io.write(f"sweep_{name}", results, f"python -m experiments.studies.sweeps {name} FOLDER")
    Console().print(table(cells), f"written to {path.name}")


if __name__ == "__main__":
    script.run(main)
