"""`fsa2lrnn demo`: compile and prove a machine, then train and repair a model (`report/demonstration/`)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsa2lrnn.cli import outputs
from fsa2lrnn.cli.options import JsonOption


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="a folder for the learned model, its repairs and the page")
    ] = Path("runs/demo"),
    learned: Annotated[
        bool, typer.Option(help="whether to train, verify and repair a model too, which takes two minutes")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Compile the paper's hardest task, prove it for all lengths and run it; then train, verify and repair a model,
    and learn one that is proved."""
    folder = output if learned else None
    outputs.check_runs(folder)

    from fsa2lrnn.extra.report.demonstration import compiled

    compiled.main(folder, as_json)
