"""Resumable studies: a run that has a row in the results is not repeated."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer

from experiments import results_io
from fsa2lrnn.errors import OutOfTime

Row = dict[str, Any]
_SHOWN = 240  # letters of a row


def run_due(
    plan: Iterable[tuple[Any, ...]],
    keys: tuple[str, ...],
    known: list[Row],
    run: Callable[..., Row],
    write: Callable[[list[Row]], object],
    minutes: float = math.inf,
) -> list[Row]:
    """Return the known rows, and a row of `run` for each cell of a plan without one that begins within `minutes`.

    `keys` name the entries of a row that identify its cell. `write` receives all rows after each run.

    >>> run_due([(1,), (2,)], ("n",), [{"n": 1, "square": 1}], lambda n: {"n": n, "square": n * n}, lambda _: None)
    {'n': 2, 'square': 4}
    [{'n': 1, 'square': 1}, {'n': 2, 'square': 4}]
    """
    rows = [*known]
    done = {tuple(row[key] for key in keys) for row in rows}
    end = time.monotonic() + 60 * minutes
    for cell in plan:
        if cell[: len(keys)] in done:
            continue
        if time.monotonic() > end:
            break
        rows.append(run(*cell))
        write(rows)
        typer.echo(str(rows[-1])[:_SHOWN])
    return rows


def known_rows(name: str, of: str = "runs", parts: Iterable[Path] = ()) -> list[Row]:
    """Return the rows of that name in results/NAME.json, if the file exists yet, and in the files of other parts."""
    files = [path for path in [results_io.RESULTS / f"{name}.json", *parts] if path in parts or path.exists()]
    return [row for path in files for row in results_io.read(path)["results"][of]]


@contextmanager
def within(seconds: float) -> Generator[None]:
    """Raise `OutOfTime` in the block after so many seconds of processor time."""

    def stop(*_: object) -> NoReturn:
        raise OutOfTime(f"{seconds:g} s of processor time have passed")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except SystemError as error:  # compiled code returned a value although the signal had set an exception
        cause = error.__cause__
        while isinstance(cause, SystemError):  # code within code
            cause = cause.__cause__
        if isinstance(cause, OutOfTime):
            raise cause from None
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
