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
    learned: Annotated[bool, typer.Option(help="whether to train, assess and repair a model too: two minutes")] = True,
    as_json: JsonOption = False,
) -> None:
    """Compile, prove and use the paper's hardest task; then train, repair and learn models.

    The trained model is assessed and repaired; the learned one is proved.
    """
    folder = output if learned else None
    outputs.check_runs(folder)

    from fsa2lrnn.extra.report.demonstration import compiled

    compiled.main(folder, as_json)
