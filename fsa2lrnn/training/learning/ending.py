"""How a run of `learn` is gone through with, saved on the way where it has a folder, and what it answers with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.training.learning.film import HeadHistory
from fsa2lrnn.training.learning.prune import CandidateMachine
from fsa2lrnn.training.learning.result import EVERY_WORD, Learned
from fsa2lrnn.training.learning.run import LearningRun, Record
from fsa2lrnn.training.learning.saving import RunFolder
from fsa2lrnn.training.train import Stop


def trained(run: LearningRun, saved: RunFolder | None, report: Callable[[Record], None] | None) -> CandidateMachine:
    """What a run ends with, gone on with from its folder if it was cut off.

    Raises `BudgetExceeded` if there is no machine to show.
    """
    if saved is None:
        found = run.go(report)
    else:
        saved.restore(run)
        with Stop() as stop:
            found = run.go(report, partial(_keep_on, saved, stop))
    if found is None:
        raise BudgetExceeded(
            f"after {run.steps:,} steps and {run.starts} starts every head reaches too many states to list them in "
            "time, so there is no machine to show: give more steps or seconds, or smaller blocks"
        )
    return found.candidate


def _keep_on(saved: RunFolder, stop: Stop, run: LearningRun) -> None:
    """Save where it is time, and where an end is asked for."""
    if stop.asked:
        saved.save(run)
        raise KeyboardInterrupt
    saved.keep(run)


def learned_of(
    run: LearningRun,
    candidate: CandidateMachine,
    machine: MooreMachine,
    model: LRNN,
    verdict: Any,
    scope: str = EVERY_WORD,
) -> Learned:
    """The answer of a run that ended with a candidate, its machine as judged and the model of it."""
    film = HeadHistory(run.examples.alphabet, run.examples.outputs, run.film) if run.film else None
    return Learned(
        model, machine, verdict, scope, candidate.heads, run.attempt.model, tuple(run.trail), run.steps, run.starts,
        run.seconds, candidate.faults, candidate.labels, film, run.cascade,
    )  # fmt: skip
