"""Runs that differ in their seed: each trains in its own folder, is evaluated, and writes a result.

On a CPU every run is a process with its own threads, as many at once as there are cores: two parallel runs take more
steps per hour than one run on two threads. On a GPU all runs are trained as one batched model.
"""

from __future__ import annotations

import json
import os
import queue
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fsa2lrnn.errors import Fsa2LrnnError
from fsa2lrnn.files import write_atomically
from fsa2lrnn.training.evaluate import LENGTHS, LETTERS, WORDS, Accuracy, check_amount, evaluate, paper_protocol
from fsa2lrnn.training.run_folder import MODEL
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import Diverged, Progress, Stop, TrainingOutcome, train, use_threads

RESULT = "result.json"
_EVALUATION_SEED = 1 << 40  # distinct from all seeds of training
_POLL_SECONDS = 0.2


class SeedFailed(Fsa2LrnnError, RuntimeError):
    """The error for runs that ended without a result."""


class FinalAccuracy(NamedTuple):
    """The accuracy of a finished run at one length."""

    seed: int
    accuracy: Accuracy


Report = Callable[[Progress | FinalAccuracy], None]


@dataclass(frozen=True)
class RunPlan:
    """The options for runs and their evaluation (`evaluate`). Raises `UnsupportedFormat` as `check_amount`."""

    resume: bool = True
    write_to: tuple[str, ...] = ()
    lengths: tuple[int, ...] = LENGTHS
    n_words: int = WORDS
    letters: int = LETTERS

    def __post_init__(self) -> None:
        check_amount(self.lengths, self.n_words, self.letters)


def run_seeds(
    settings: Settings, seeds: Sequence[int], folder: Path, plan: RunPlan, report: Report | None = None
) -> list[dict[str, Any]]:
    """Train and evaluate one run per seed, in `folder`/seed-N; return their results in the order of `seeds`.

    A run that diverges has an "error" in its result. A run that SIGINT or SIGTERM interrupts has "end": "interrupted"
    and resumes when called again. Processes are spawned: call this under `if __name__ == "__main__":` in a script.

    Raises:
        SeedFailed: with the runs that could not start or were killed, after the others have finished.
    """
    jobs = [(settings.with_seed(seed), folder / f"seed-{seed}") for seed in dict.fromkeys(seeds)]
    send = report or (lambda _: None)
    if len(jobs) == 1:
        return [run_seed(*jobs[0], plan, send)]
    return (_in_processes if settings.device == "cpu" else run_stacked)(jobs, plan, send)


def run_stacked(jobs: Sequence[tuple[Settings, Path]], plan: RunPlan, report: Report) -> list[dict[str, Any]]:
    """Train all runs as one batched model in this process, evaluate each, and return their results."""
    from fsa2lrnn.training import stacked

    outcomes = stacked.train_stacked(jobs, plan.resume, report, plan.write_to)
    return [_result(*job, outcome, plan, report) for job, outcome in zip(jobs, outcomes, strict=True)]


def run_seed(settings: Settings, folder: Path, plan: RunPlan, report: Report) -> dict[str, Any]:
    """Train and evaluate one run in this process; return the result, which is also written to `folder`/result.json."""
    try:
        outcome = train(settings, folder, plan.resume, report, plan.write_to)
    except Diverged as error:
        outcome = error
    return _result(settings, folder, outcome, plan, report)


def _result(
    settings: Settings, folder: Path, outcome: TrainingOutcome | Diverged, plan: RunPlan, report: Report
) -> dict[str, Any]:
    result: dict[str, Any] = {"seed": settings.seed, "folder": str(folder)}
    if isinstance(outcome, Diverged):
        result |= {"end": "diverged", "error": str(outcome)}
    else:
        result |= {"end": outcome.end, "step": outcome.step, "model": str(folder / MODEL)}
        result |= {"paper_protocol": paper_protocol(outcome.records, settings.stop_at)}
        if outcome.end != "interrupted":
            with use_threads(settings.threads):
                accuracies = evaluate(
                    outcome.model,
                    outcome.words,
                    _EVALUATION_SEED + settings.seed,
                    plan.lengths,
                    plan.n_words,
                    plan.letters,
                    lambda accuracy: report(FinalAccuracy(settings.seed, accuracy)),
                )
            result |= {"last_checkpoint": [accuracy.to_json() for accuracy in accuracies]}
    write_atomically(folder / RESULT, (json.dumps(result, indent=2, ensure_ascii=False) + "\n").encode())
    return result


def _in_processes(jobs: list[tuple[Settings, Path]], plan: RunPlan, report: Report) -> list[dict[str, Any]]:
    n_processes = max(1, min(len(jobs), (os.cpu_count() or 1) // jobs[0][0].threads))
    events: queue.SimpleQueue[Progress | FinalAccuracy] = queue.SimpleQueue()
    with Stop() as stop, ThreadPoolExecutor(n_processes) as pool:
        futures = [pool.submit(run_in_a_process, *job, plan, events.put, stop) for job in jobs]
        while not all(future.done() for future in futures) or not events.empty():
            try:
                report(events.get(timeout=_POLL_SECONDS))
            except queue.Empty:
                continue
    answers = [future.result() for future in futures]
    if failures := [answer["failed"] for answer in answers if "failed" in answer]:
        raise SeedFailed("; ".join(failures))
    return answers


def run_in_a_process(settings: Settings, folder: Path, plan: RunPlan, put: Report, stop: Stop) -> dict[str, Any]:
    """Train and evaluate one run in another process, forward its events, return its result or {"failed": reason}.

    Every run has a pool of its own, because a process that dies breaks its whole pool.
    """
    interrupted: dict[str, Any] = {"seed": settings.seed, "folder": str(folder), "end": "interrupted"}
    if stop.asked:
        return {**interrupted, "step": 0}
    spawned = get_context("spawn")
    receiver, sender = spawned.Pipe(duplex=False)
    with receiver, ProcessPoolExecutor(1, spawned, _begin, (sender, settings.threads)) as pool:
        future = pool.submit(_attempt, settings, folder, plan)
        _listen(receiver, sender, future, put, stop)
        try:
            return future.result()
        except KeyboardInterrupt:
            return interrupted
        except BrokenProcessPool:
            if stop.asked:
                return interrupted
            return {"failed": f"seed {settings.seed}: its process died and left no result: call again"}
        except Fsa2LrnnError as error:
            return {"failed": f"seed {settings.seed}: {error}"}


def _listen(receiver: Connection, sender: Connection, future: Future[Any], put: Report, stop: Stop) -> None:
    """Forward events until the process ends or dies; a requested stop is sent to it once, as SIGINT."""
    process = None
    is_stopping = False
    while not future.done() or receiver.poll():
        if stop.asked and process is not None and not is_stopping:
            os.kill(process, signal.SIGINT)
            is_stopping = True
        if receiver.poll(_POLL_SECONDS):
            try:
                event = receiver.recv()
            except EOFError:
                return
            if isinstance(event, int):
                process = event
                sender.close()  # the other process now holds the only sending end, which closes if it dies
            else:
                put(event)


_send: Report = lambda _: None  # noqa: E731 - in a process that runs one seed: sends its events to the parent process


def _begin(sender: Connection, threads: int) -> None:
    """Start a seed's process in its own session, so that Ctrl-C reaches it only through `_listen`."""
    global _send
    os.setsid()
    torch.set_num_threads(threads)
    sender.send(os.getpid())
    _send = sender.send


def _attempt(settings: Settings, folder: Path, plan: RunPlan) -> dict[str, Any]:
    return run_seed(settings, folder, plan, _send)
