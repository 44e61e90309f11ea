"""`fsa2lrnn sweep`: many runs of training at once, on this machine or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.files import check_folder

Engine = Literal["ray", "processes", "serial", "stacked"]  # as in `sweep.Engine`, which is slow to import


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the sweep (.toml .json)")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the folder of the runs; a second call resumes them")],
    seeds: Annotated[str | None, typer.Option(help="seeds in place of the file's: 0,1,2")] = None,
    engine: Annotated[
        Engine, typer.Option(help="in parallel on Ray or processes, one after the other, or stacked on a GPU")
    ] = "ray",
    address: Annotated[str | None, typer.Option(help="address of a Ray cluster; by default only this machine")] = None,
    retries: Annotated[int, typer.Option(min=0, help="retries of a failed run")] = 1,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Train every task with every network, setting and seed; the exit code is 1 if a run failed after its retries."""
    changes = {} if seeds is None else {"seeds": list(options.whole_numbers(seeds, "--seeds"))}
    check_folder(output)
    sources.know_layers(layers)

    from fsa2lrnn.training import sweep as sweeping
    from fsa2lrnn.training.grid import Sweep, read_sweep

    trials = Sweep.from_dict({**read_sweep(file), **changes}).trials
    swept = sweeping.sweep_in(output, trials, engine, address, retries=retries, report=console.say)
    if as_json:
        console.emit_json({"cells": swept.cells, "folder": str(output)})
    else:
        console.out.print(sweeping.table(swept.cells), f"results and summary: {console.markup(str(output))}")
    if swept.interrupted or swept.failed:
        raise typer.Exit(options.INTERRUPTED if swept.interrupted else options.NO)
