"""Trained models under two protocols: `python -m experiments.studies.training FOLDER…`.

Gathers what runs of `fsa2lrnn train --output FOLDER` wrote into results/training.json: for every seed where training
ended, the accuracy that the paper's protocol gives, and the last checkpoint's on fresh words by length.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from experiments import results_io, script


def main(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER…", help="what `fsa2lrnn train --output` was given")],
) -> None:
    """Gather the results of runs from their folders, write results/training.json, print the table."""
    tasks = [gathered(json.loads((folder / "result.json").read_text("utf-8"))) for folder in folders]
    path = results_io.write("training", tasks, "python -m experiments.studies.training FOLDER…")
    table = Table("task", "seed", "steps", "best on the way, at 500", "length", "last output right", "whole word right")
    for task in tasks:
        for seed in task["seeds"]:
            for line in seed["last_checkpoint"]:
                shown = (f"{line[name]['accuracy']:.4f}" for name in ("last_position", "whole_word"))
                best = f"{seed['paper_protocol']['accuracy']:.3f}"
                table.add_row(task["task"], str(seed["seed"]), f"{seed['step']:,}", best, f"{line['length']:,}", *shown)
    Console().print(table, f"written to {path.name}")


def gathered(document: dict[str, Any]) -> dict[str, Any]:
    """Return the result of one task without file paths, and the command that repeats it."""
    seeds = [{name: x for name, x in seed.items() if name not in ("folder", "model")} for seed in document["seeds"]]
    numbers = ",".join(str(seed["seed"]) for seed in seeds)
    letters = max(line["length"] * line["words"] for seed in seeds for line in seed["last_checkpoint"])
    options = f"--preset {document['preset']} --seeds {numbers} --max-tokens {letters} --output FOLDER"
    command = f'fsa2lrnn train "{document["task"]}" {options}'
    rest = {name: document[name] for name in ("task", "preset", "settings", "paper_protocol_mean")}
    return {**rest, "command": command, "seeds": seeds}


if __name__ == "__main__":
    script.run(main)
