"""Progress bars for runs that are started from Python, in a notebook or on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from fsa2lrnn.display.markup import Markup, join, tag
from fsa2lrnn.training.seeds import FinalAccuracy
from fsa2lrnn.training.train import Progress

_PAUSE = 0.2  # seconds between two updates of the display


class ProgressBars:
    """The `report` argument of `train` and `train_seeds`: `train(settings, folder, report=ProgressBars())`.

    In a notebook (an IPython kernel) it is one HTML output with a bar per seed, updated in place, without widgets; on a
    terminal it is one line; elsewhere it is one line per evaluation.

    >>> bars = ProgressBars()
    >>> bars(Progress(0, 5, 10, 0.25, None, 100.0, None))
    >>> bars.lines()
    ['seed 0: 5 of 10 steps, loss 0.2500, 100.0 steps/s']
    """

    def __init__(self) -> None:
        self._runs: dict[int, Progress] = {}
        self._accuracies: dict[int, str] = {}
        self._updated_at, self._handle = float("-inf"), None

    def __call__(self, event: Progress | FinalAccuracy) -> None:
        """Display an event of a run."""
        if isinstance(event, FinalAccuracy):
            at = event.accuracy
            self._accuracies[event.seed] = f"length {at.length:,}: {at.last:,} of {at.words:,} right at the end"
        else:
            self._runs[event.seed] = event
        is_news = isinstance(event, FinalAccuracy) or event.record is not None or event.step >= event.steps
        if is_news or time.monotonic() - self._updated_at >= _PAUSE:
            self._updated_at = time.monotonic()
            self._show(event.seed, is_news)

    def lines(self) -> list[str]:
        """Return one line of text per run."""
        return [f"seed {seed}: {self._status(seed)}" for seed in sorted({*self._runs, *self._accuracies})]

    def _repr_html_(self) -> str:
        rows: list[Markup] = []
        for seed in sorted({*self._runs, *self._accuracies}):
            run = self._runs.get(seed)
            bar = tag("progress", value=run.step, max=run.steps, style="width:16em") if run else None
            cells = (tag("td", part, style="text-align:left") for part in (f"seed {seed}", bar, self._status(seed)))
            rows.append(tag("tr", *cells))
        return tag("table", tag("tbody", join(*rows)), style="font-variant-numeric:tabular-nums")

    def _status(self, seed: int) -> str:
        if seed in self._accuracies:
            return self._accuracies[seed]
        run = self._runs[seed]
        accuracy = "" if run.accuracy is None else f", {run.accuracy:.3f} right"
        return f"{run.step:,} of {run.steps:,} steps, loss {run.loss:.4f}{accuracy}, {run.steps_per_second:.1f} steps/s"

    def _show(self, seed: int, is_news: bool) -> None:
        if (display := _notebook()) is not None:
            if self._handle is None:
                self._handle = display(self, display_id=True)
            else:
                self._handle.update(self)
        elif sys.stderr.isatty():
            print(f"\r\x1b[K{' · '.join(self.lines())}", end="\n" if is_news else "", file=sys.stderr, flush=True)
        elif is_news:
            print(f"seed {seed}: {self._status(seed)}", file=sys.stderr, flush=True)


def _notebook() -> Any:
    """Return IPython's `display` if a kernel runs this, else None, without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display  # pyright: ignore[reportMissingImports] - installed, since its kernel runs

    return display
