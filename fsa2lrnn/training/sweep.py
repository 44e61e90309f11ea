"""Sweeps of training runs, task × network × setting × seed: `fsa2lrnn sweep FILE -o FOLDER`.

The runs execute on Ray (on this machine or a cluster), in processes, in sequence, or stacked on a GPU. A sweep that is
called again skips finished runs and resumes interrupted ones from their checkpoints. `results.jsonl` has one line per
run, `summary.json` the means over seeds. A sweep file:

    preset = "quick"
    tasks = ["task:parity", "task:sum_mod(3)"]
    networks = ["block-8", "diagonal"]   # or a table of changes, like `settings`
    seeds = [0, 1, 2]
    lengths = [40, 500]

    [settings.slow]
    learning_rate = 1e-4
    [settings.fast]
    learning_rate = 1e-3
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from rich.markup import escape
from rich.table import Column, Table

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat, counted
from fsa2lrnn.files import alone, write_atomically
from fsa2lrnn.reading import parse_json, read
from fsa2lrnn.training.engines import Job, JobResult, Run, on_ray, processes, serial, stacked
from fsa2lrnn.training.evaluate import Record
from fsa2lrnn.training.grid import Trial
from fsa2lrnn.training.trainer import Stop


@dataclass(frozen=True)
class Proportion:
    """An accuracy with its 95 % interval."""

    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class LengthResult:
    """The accuracies of the last checkpoint on `words` words of one length."""

    length: int
    words: int
    whole_word: Proportion
    last_position: Proportion


@dataclass(frozen=True)
class ProtocolResult:
    """The score of a run under the paper's protocol: its best accuracy, None without any evaluation."""

    looks: int
    accuracy: float | None
    step: int | None = None


@dataclass(frozen=True)
class RunResult:
    """The content of `result.json` for one run; `last_checkpoint` is None if the run diverged or failed."""

    seed: int
    end: str
    step: int | None = None
    error: str | None = None
    paper_protocol: ProtocolResult | None = None
    last_checkpoint: tuple[LengthResult, ...] | None = None


@dataclass(frozen=True)
class EvaluationScope:
    """The lengths, the number of words per length, and the limit on letters of the evaluation of a run."""

    lengths: tuple[int, ...]
    words: int
    letters: int


@dataclass(frozen=True, kw_only=True)
class SweepLine(RunResult):
    """The record of a run of a sweep, one line of `results.jsonl`."""

    folder: str
    judged: EvaluationScope


@dataclass(frozen=True, kw_only=True)
class KeptModelOrigin(RunResult):
    """The origin of a saved model, from the JSON file next to it."""

    task: str
    command: str


def parse_result(kind: type[RunResult], text: str | bytes, origin: str) -> Record:
    """Parse the JSON object in a text, check its fields against a schema, and return it with its unknown fields.

    Raises `CheckpointError` with the first field that is missing or of another type.
    """
    try:
        value = parse_json(text, origin)
        read(kind, value, "the result", pass_over=True)
    except UnsupportedFormat as error:
        raise CheckpointError(f"{origin} is not a result of a run ({error}): remove it") from error
    return value


def read_result(path: Path, kind: type[RunResult] = RunResult) -> Record:
    """Read a file such as `result.json` by `parse_result`. Raises `CheckpointError`, and `OSError` if unreadable."""
    return parse_result(kind, path.read_bytes(), str(path))


RESULTS, SUMMARY = "results.jsonl", "summary.json"
RETRIES = 1
_MEASURES = ("last_position", "whole_word")

Report = Callable[[str], None]
Engine = Literal["ray", "processes", "serial", "stacked"]


class SweepOutcome(NamedTuple):
    """The result of a sweep: the rows of `summary`, whether a run failed after all retries, whether it was stopped."""

    cells: list[Record]
    failed: bool
    interrupted: bool


class Ledger:
    """The records in `results.jsonl`, the latest of each trial; each write replaces the file atomically."""

    def __init__(self, path: Path) -> None:
        """Read the file if it exists. Raises `CheckpointError` with the first line that is not a record."""
        self._path = path
        self._records: dict[str, Record] = {}
        for i, line in enumerate(path.read_bytes().splitlines() if path.exists() else [], start=1):
            record = parse_result(SweepLine, line, f"{path}, line {i}")
            self._records[record["folder"]] = record

    @property
    def records(self) -> list[Record]:
        """All records, in the order in which they were written."""
        return list(self._records.values())

    def find(self, trial: Trial) -> Record | None:
        """Return the record of a trial with the same evaluation, else None."""
        record = self._records.get(trial.folder)
        return record if record is not None and record["judged"] == trial.judged else None

    def write(self, record: Record) -> None:
        """Append a record, remove an earlier one of the same trial, and write the file."""
        self._records.pop(record["folder"], None)
        self._records[record["folder"]] = json.loads(json.dumps(record))  # with the types that a reader gets
        lines = (json.dumps(each, ensure_ascii=False) + "\n" for each in self._records.values())
        write_atomically(self._path, "".join(lines).encode())


def sweep_in(
    folder: Path,
    trials: Sequence[Trial],
    engine: Engine = "ray",
    address: str | None = None,
    retries: int = RETRIES,
    report: Report = lambda _: None,
) -> SweepOutcome:
    """Run the trials of a sweep in a folder, write results and summary there, and return the outcome.

    Args:
        folder: created if it does not exist.
        trials: the trials of one sweep (`Sweep.trials`) or of several.
        engine: one of the engines of `fsa2lrnn.training.engines`.
        address: the address of a cluster of Ray; by default this machine.
        retries: how often a failed run is repeated.
        report: called with one line of text per run.

    Raises:
        UnsupportedFormat: if another sweep uses the folder, or as `engines.on_ray` does.
        MissingPackage, ConnectionError: as `engines.on_ray` does.
        CheckpointError: if the results in the folder are damaged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    if engine == "ray":
        runs = on_ray(stop, address)
    else:
        in_process = {"serial": serial, "stacked": stacked}
        runs = in_process[engine](stop) if engine in in_process else processes(stop)
    with alone(folder, "sweep"), runs as run, stop:  # `stop` last, because Ray installs a handler of SIGTERM
        records = run_sweep(trials, folder, run, stop, retries, report)
    cells = summary(trials, records)
    write_atomically(folder / SUMMARY, (json.dumps(cells, indent=2, ensure_ascii=False) + "\n").encode())
    failed = any(record is not None and record["end"] == "failed" for record in records)
    return SweepOutcome(cells, failed, stop.asked)


def run_sweep(
    trials: Sequence[Trial], folder: Path, run: Run, stop: Stop, retries: int = RETRIES, report: Report = lambda _: None
) -> list[Record | None]:
    """Run the trials that are not finished; return the record of each trial, None if it has none yet.

    A failed trial is repeated after the others, at most `retries` times.
    """
    ledger = Ledger(folder / RESULTS)
    jobs = {Job(trial.settings, (folder / trial.folder).resolve(), trial.plan): trial for trial in trials}
    todo = [job for job, trial in jobs.items() if not _is_done(ledger.find(trial))]
    report(f"{counted(len(jobs), 'run')}, {len(jobs) - len(todo)} of them finished before")
    failures: dict[Job, list[str]] = {job: [] for job in todo}
    for _ in range(1 + retries):
        failed, begun, n = [], time.monotonic(), len(todo)
        for i, (job, answer) in enumerate(run(todo) if todo else [], start=1):
            if answer.result is not None and answer.result["end"] == "interrupted":
                continue
            if answer.traceback is not None:
                failed.append(job)
                failures[job].append(answer.traceback)
            ledger.write(_record(jobs[job], answer, failures[job]))
            report(f"[{i}/{n}, {time.monotonic() - begun:,.0f} s] {_line(jobs[job], answer)}")
        if stop.asked:
            break
        todo = failed
    return [ledger.find(trial) for trial in trials]


def _is_done(record: Record | None) -> bool:
    return record is not None and record["end"] != "failed"


def _record(trial: Trial, answer: JobResult, failures: list[str]) -> Record:
    record = {"task": trial.task, "network": trial.network, "setting": trial.setting, "seed": trial.settings.seed}
    record |= {"folder": trial.folder, "judged": trial.judged, "settings": json.loads(trial.settings.to_json())}
    if answer.result is None:
        record["end"] = "failed"
    else:  # without the paths of its files
        record |= {name: x for name, x in answer.result.items() if name not in ("folder", "model")}
    return {**record, "failures": failures}


def _line(trial: Trial, answer: JobResult) -> str:
    name = f"{trial.task}, {trial.network}, {trial.setting}, seed {trial.settings.seed}: "
    if answer.result is None:
        return f"{name}failed, {(answer.traceback or '').strip().splitlines()[-1]}"
    if "last_checkpoint" not in answer.result:
        return f"{name}{answer.result['end']}, {answer.result['error']}"
    shares = (f"{x['last_position']['accuracy']:.3f} at {x['length']:,}" for x in answer.result["last_checkpoint"])
    return f"{name}{answer.result['end']} at step {answer.result['step']:,}, last output right {', '.join(shares)}"


def summary(trials: Sequence[Trial], records: Iterable[Record | None]) -> list[Record]:
    """Return one row per task, network and setting: ends of runs; mean, minimum and maximum accuracy over seeds."""
    cells: dict[tuple[str, str, str], list[Record | None]] = {}
    for trial, record in zip(trials, records, strict=True):
        cells.setdefault((trial.task, trial.network, trial.setting), []).append(record)
    return [_cell(names, of_cell) for names, of_cell in cells.items()]


def _cell(names: tuple[str, str, str], records: list[Record | None]) -> Record:
    """Return a row of the summary: ends of all runs, and spreads over the evaluated ones, for each length."""
    ends = ["interrupted" if record is None else record["end"] for record in records]
    evaluated = [record for record in records if record is not None and "last_checkpoint" in record]
    cell: Record = dict(zip(("task", "network", "setting"), names, strict=True))
    cell |= {"seeds": len(evaluated), "ends": {end: ends.count(end) for end in dict.fromkeys(ends)}, "lengths": []}
    if not evaluated:
        return cell
    cell["paper_protocol"] = _spread([record["paper_protocol"]["accuracy"] for record in evaluated])
    for results in zip(*(record["last_checkpoint"] for record in evaluated), strict=True):
        spreads = {name: _spread([result[name]["accuracy"] for result in results]) for name in _MEASURES}
        cell["lengths"].append({"length": results[0]["length"], "words": results[0]["words"], **spreads})
    return cell


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": statistics.mean(values), "min": min(values), "max": max(values)}


def table(cells: list[Record]) -> Table:
    """Format the rows of `summary` as a table of means, minima and maxima, one line per length."""
    names = ("task", "network", "setting", "ends", "best on the way", "length", "last output", "whole word")
    rows = Table(*(Column(name, overflow="fold") for name in names))
    for cell in cells:
        ends = ", ".join(f"{n} {end}" for end, n in cell["ends"].items())
        best = _text(cell["paper_protocol"]) if "paper_protocol" in cell else ""
        heads = [*(escape(cell[name]) for name in ("task", "network", "setting")), ends, best]
        for line in cell["lengths"] or [None]:
            accuracies = [f"{line['length']:,}", *(_text(line[name]) for name in _MEASURES)] if line else []
            rows.add_row(*heads, *accuracies)
            heads = [""] * len(heads)
        rows.add_section()
    return rows


def _text(spread: dict[str, float]) -> str:
    return f"{spread['mean']:.3f} ({spread['min']:.3f}–{spread['max']:.3f})"
