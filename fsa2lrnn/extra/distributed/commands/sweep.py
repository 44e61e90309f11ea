"""`fsa2lrnn sweep`: many runs of training at once, on this machine or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fsa2lrnn.cli import given, outputs, sources
from fsa2lrnn.cli.options import INTERRUPTED, NO, JsonOption, LayersOption, Preset
from fsa2lrnn.errors import UnsupportedFormat

Engine = Literal["ray", "processes", "serial", "stacked"]  # as in `sweep.Engine`, which is slow to import


def sweep(
    output: Annotated[Path, typer.Option("--output", "-o", help="the folder of the runs; the next call resumes them")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="the sweep (.toml .json); options override its entries")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(metavar="SOURCE", help="a machine; repeatable")] = None,
    network: Annotated[list[str] | None, typer.Option(metavar="NAME", help="block-8, diagonal, …; repeatable")] = None,
    seeds: Annotated[str | None, typer.Option(help="one run each in every cell: 0,1,2")] = None,
    preset: Annotated[Preset | None, typer.Option(help="the settings that are changed")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME:KEY=VALUE,…", help="a change of the settings; repeatable")
    ] = None,
    lengths: Annotated[
        str | None, typer.Option(help="word lengths at which last checkpoints are evaluated: 40,500")
    ] = None,
    words: Annotated[int | None, typer.Option(min=1, help="fresh words per length")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="maximum letters per length: fewer words if they are long")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="in parallel on Ray, in sequence, or at once on a GPU")] = "ray",
    address: Annotated[
        str | None, typer.Option(help="the address of a Ray cluster; by default only this machine")
    ] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="cores of this machine for Ray, by default all")] = None,
    retries: Annotated[int, typer.Option(min=0, help="how often a failed run is repeated")] = 1,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train every task with every network, setting and seed; exit with 1 if a run failed finally."""
    if address is not None and cpus is not None:
        raise UnsupportedFormat(f"--cpus {cpus} is for this machine, and {address} a cluster: give one of both")
    options = {
        "tasks": task or None,
        "networks": network or None,
        "seeds": None if seeds is None else list(given.whole_numbers(seeds, "--seeds")),
        "preset": preset,
        "lengths": None if lengths is None else list(given.whole_numbers(lengths, "--lengths")),
        "words": words,
        "letters": max_tokens,
    }
    settings = given.named_assignments(changes or [])
    outputs.check_runs(output)
    sources.know_layers(layers)

    from fsa2lrnn.cli import console
    from fsa2lrnn.extra.distributed import sweep as sweeping
    from fsa2lrnn.extra.distributed.grid import Sweep, read

    values = {**(read(file) if file else {}), **{name: x for name, x in options.items() if x is not None}}
    if settings:
        values["settings"] = {**values.get("settings", {}), **settings}
    swept = sweeping.sweep_in(output, Sweep.from_dict(values).trials, engine, address, cpus, retries, console.say)
    if as_json:
        console.emit_json({"cells": swept.cells, "folder": str(output)})
    else:
        console.out.print(sweeping.table(swept.cells), f"results and summary: {console.markup(str(output))}")
    if swept.interrupted or swept.failed:
        raise typer.Exit(INTERRUPTED if swept.interrupted else NO)
