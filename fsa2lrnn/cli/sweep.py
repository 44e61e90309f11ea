"""`fsa2lrnn sweep`: many runs of training at once, on this machine or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fsa2lrnn.cli import console, sources
from fsa2lrnn.cli.options import (
    INTERRUPTED,
    NO,
    JsonOption,
    LayersOption,
    Preset,
    setting_value,
    whole_numbers,
)
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import check_folder

Engine = Literal["ray", "processes", "serial", "stacked"]  # as in `sweep.Engine`, which is slow to import


def sweep(
    output: Annotated[Path, typer.Option("--output", "-o", help="the folder of the runs; a second call resumes them")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="the sweep (.toml .json); options replace its entries")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(metavar="SOURCE", help="a machine; repeatable")] = None,
    network: Annotated[list[str] | None, typer.Option(metavar="NAME", help="block-8, diagonal, …; repeatable")] = None,
    seeds: Annotated[str | None, typer.Option(help="seeds of the runs of every cell: 0,1,2")] = None,
    preset: Annotated[Preset | None, typer.Option(help="named settings, which --set changes")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME:KEY=VALUE,…", help="an additional setting; repeatable")
    ] = None,
    lengths: Annotated[str | None, typer.Option(help="lengths at which last checkpoints are evaluated: 40,500")] = None,
    words: Annotated[int | None, typer.Option(min=1, help="fresh words per length")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="the most letters per length; long words are evaluated in smaller numbers")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="in parallel on Ray or processes, one after the other, or stacked on a GPU")
    ] = "ray",
    address: Annotated[str | None, typer.Option(help="address of a Ray cluster; by default only this machine")] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="cores of this machine for Ray, by default all")] = None,
    retries: Annotated[int, typer.Option(min=0, help="retries of a failed run")] = 1,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train every task with every network, setting and seed; the exit code is 1 if a run failed after its retries."""
    if address is not None and cpus is not None:
        raise UnsupportedFormat(f"--cpus {cpus} is for this machine, and {address} a cluster: give one of both")
    options = {
        "tasks": task or None,
        "networks": network or None,
        "seeds": None if seeds is None else list(whole_numbers(seeds, "--seeds")),
        "preset": preset,
        "lengths": None if lengths is None else list(whole_numbers(lengths, "--lengths")),
        "words": words,
        "letters": max_tokens,
    }
    settings = _named_assignments(changes or [])
    check_folder(output)
    sources.know_layers(layers)

    from fsa2lrnn.training import sweep as sweeping
    from fsa2lrnn.training.grid import Sweep, read_sweep

    values = {**(read_sweep(file) if file else {}), **{name: x for name, x in options.items() if x is not None}}
    if settings:
        values["settings"] = {**values.get("settings", {}), **settings}
    swept = sweeping.sweep_in(output, Sweep.from_dict(values).trials, engine, address, cpus, retries, console.say)
    if as_json:
        console.emit_json({"cells": swept.cells, "folder": str(output)})
    else:
        console.out.print(sweeping.table(swept.cells), f"results and summary: {console.markup(str(output))}")
    if swept.interrupted or swept.failed:
        raise typer.Exit(INTERRUPTED if swept.interrupted else NO)


def _named_assignments(texts: list[str]) -> dict[str, dict[str, object]]:
    """Parse NAME:KEY=VALUE,… texts to a dictionary of dictionaries; raise `UnsupportedFormat` for other texts.

    >>> _named_assignments(["fast:learning_rate=0.01,optimiser=adamw"])
    {'fast': {'learning_rate': 0.01, 'optimiser': 'adamw'}}
    """
    settings: dict[str, dict[str, object]] = {}
    for text in texts:
        name, _, changes = text.partition(":")
        settings[name] = {}
        for change in changes.split(","):
            key, sign, value = change.partition("=")
            if not (name and key.strip() and sign):
                raise UnsupportedFormat(f"--set {text!r}: write NAME:KEY=VALUE, fast:learning_rate=0.001,layers=2")
            settings[name][key.strip()] = setting_value(value)
    return settings
