"""Execution of a run of `learn`, with checkpoints if it has a folder, and its result as `Learned`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.learning.prune import CandidateMachine
from fsa2lrnn.learning.result import EVERY_WORD, Learned
from fsa2lrnn.learning.run import LearningRun, Record
from fsa2lrnn.learning.saving import RunFolder
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.trainer import Stop


def trained(run: LearningRun, saved: RunFolder | None, report: Callable[[Record], None] | None) -> CandidateMachine:
    """Return the candidate at the end of a run; an interrupted run resumes from its folder.

    Raises `BudgetExceeded` if no machine is small enough to list.
    """
    if saved is None:
        learned = run.go(report)
    else:
        saved.restore(run)
        with Stop() as stop:
            learned = run.go(report, partial(_save_between, saved, stop))
    if learned is None:
        raise BudgetExceeded(
            f"after {run.steps:,} steps and {run.starts} starts every head reaches too many states to list them in "
            "time, so there is no machine to show: give more steps or seconds, or smaller blocks"
        )
    return learned.candidate


def _save_between(saved: RunFolder, stop: Stop, run: LearningRun) -> None:
    """Save the run if the last save is half a minute ago, or save it and raise KeyboardInterrupt after a signal."""
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
    """Return the result of a run that ended with a candidate, with its verified machine and model."""
    return Learned(
        model, machine, verdict, scope, candidate.heads, run.attempt.model, tuple(run.trail), run.steps, run.starts,
        run.seconds, candidate.faults, candidate.labels,
    )  # fmt: skip
