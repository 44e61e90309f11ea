"""Table 2, whole: `python -m experiments.studies.table2 FOLDER`, days of one core; called again, it goes on.

Each cell first tries its rates with one seed; the seeds that follow take the better one (`cells.choice`). All first
seeds come before all others, the paper's columns before the rest, so that the table fills evenly. Our column is what
results/training.json holds of the same protocol, and the seeds that it lacks.

Runs that have ended are kept in results/table2_runs.jsonl, so that another folder, or another machine, goes on after
them. Runs go side by side into processes of this machine, to Ray, or at once to a GPU (`--engine stacked --device
cuda`). After every run results/table2.json is written anew, with what has ended so far, in the end results/table2.svg
too; `--collect` writes them and runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from experiments import results_io, script
from experiments.studies.table2 import cells, columns, show
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.training.grid import Trial
from fsa2lrnn.training.sweep import RESULTS, Engine, Ledger, sweep_in

RUNS = "table2_runs.jsonl"  # among the results
COMMAND = "python -m experiments.studies.table2 FOLDER"


def main(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="of the runs")] = Path("runs/table2"),
    column: Annotated[list[str] | None, typer.Option(metavar="NAME", help="these alone; repeatable")] = None,
    task: Annotated[list[str] | None, typer.Option(metavar="SOURCE", help="these alone; repeatable")] = None,
    rate: Annotated[list[str] | None, typer.Option(metavar="NAME", help="the first seed alone, with these")] = None,
    engine: Annotated[Engine, typer.Option(help="in processes, on Ray, in turn, or on a GPU")] = "processes",
    address: Annotated[str | None, typer.Option(help="of a Ray cluster")] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda with --engine stacked")] = "cpu",
    collect: Annotated[bool, typer.Option("--collect", help="run nothing, write what has ended")] = False,
) -> None:
    """Run what has not ended yet, write results/table2.json and its figure, print the table."""
    names, tasks = column or list(columns.COLUMNS), task or list(columns.TASKS)
    _check(names, columns.COLUMNS, "column")
    _check(tasks, columns.TASKS, "task")
    _check(rate or (), columns.RATES, "rate")
    console = Console(stderr=True)
    take_over(folder)
    if not collect:
        for trials in _rounds(folder, names, tasks, rate, device):
            swept = sweep_in(folder, trials, engine, address, report=partial(_say, console, folder))
            if swept.interrupted:
                raise typer.Exit(130)
    Console(width=220).print(show.table(write(folder)), markup=False)


def _check(given: Iterable[str], known: Iterable[str], kind: str) -> None:
    if unknown := [name for name in given if name not in known]:
        raise UnsupportedFormat(f"{kind} {unknown[0]!r} is none of {', '.join(known)}")


def _say(console: Console, folder: Path, line: str) -> None:
    """Print a sweep's report of a run, and write the table anew."""
    write(folder, draws=False)
    console.print(line)


def _rounds(
    folder: Path, names: list[str], tasks: list[str], rates: Sequence[str] | None = None, device: str = "cpu"
) -> Iterator[list[Trial]]:
    """Yield the trials to run at once: first seeds, then the others, once their rate is known.

    With `rates`, yield the first seeds with these rates only.
    """
    found = sorted(product(tasks, names), key=lambda cell: columns.COLUMNS[cell[1]].paper is None)
    first = [
        (task, name, rate, (columns.FIRST_SEED,))
        for is_in_paper, rate in product((True, False), rates or columns.RATES)
        for task, name in found
        if (columns.COLUMNS[name].paper is not None) == is_in_paper and rate in columns.rates_of(name)
    ]
    yield _missing(_records(folder), first, device)
    if not rates:
        chosen = [(*cell, cells.choice(_records(folder), *cell)) for cell in found]
        more = [
            (task, name, rate, tuple(range(columns.COLUMNS[name].seeds)))
            for task, name, rate in chosen
            if rate is not None
        ]
        yield _missing(_records(folder), more, device)


def _missing(
    records: Sequence[cells.Record], wanted: Iterable[tuple[str, str, str, tuple[int, ...]]], device: str
) -> list[Trial]:
    """Return the trials without a record, of tasks, columns, rates and seeds."""
    trials: list[Trial] = []
    for task, name, rate, seeds in wanted:
        if left := tuple(seed for seed in seeds if cells.find(records, task, name, rate, seed) is None):
            trials += columns.sweep(task, name, (rate,), left, device).trials
    return trials


def _records(folder: Path) -> list[cells.Record]:
    return [*Ledger(folder / RESULTS).records, *cells.trained_before(results_io.read("training")["results"])]


def take_over(folder: Path) -> None:
    """Put the runs that are kept among the results into a folder's ledger, where it has none of the same name."""
    ledger = Ledger(folder / RESULTS)
    there = {record["folder"] for record in ledger.records}
    for record in Ledger(results_io.RESULTS / RUNS).records:
        if record["folder"] not in there:
            folder.mkdir(parents=True, exist_ok=True)
            ledger.write(record)


def write(folder: Path, draws: bool = True) -> dict[str, Any]:
    """Write the document of the finished runs in a folder and the runs themselves, with the figure if it `draws`."""
    results_io.RESULTS.mkdir(exist_ok=True)
    kept = Ledger(results_io.RESULTS / RUNS)
    for record in Ledger(folder / RESULTS).records:
        if record["end"] in cells.ENDED and record not in kept.records:
            kept.write(record)
    document = cells.document(_records(folder))
    results_io.write("table2", document, COMMAND)
    if draws:
        show.figure(document, results_io.RESULTS / "table2.svg")
    return document


if __name__ == "__main__":
    script.run(main)
