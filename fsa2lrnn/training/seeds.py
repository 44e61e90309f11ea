"""Runs that differ in their seed: each trains in its own folder, is evaluated, and writes a result.

On a CPU every run is a process with its own threads, as many at once as there are cores: two parallel runs take more
steps per hour than one run on two threads. On a GPU, where kernel launches dominate a step, runs that differ only in
their seed are one batched model: the weights of all are stacked along a new axis and the network is mapped over it
(`torch.func.vmap`), so that each operation is launched once for all runs. Runs with CUDA graphs (`GraphReplay`) replay
them in parallel instead. Each run has its own words, gradient norm, optimiser, evaluations, records and folder, as in
`fsa2lrnn.training.train`; the others continue when one ends.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.files import write_atomically
from fsa2lrnn.nn.checkpoint import on_meta_device
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.evaluate import LENGTHS, LETTERS, WORDS, Accuracy, Record, check_amount, evaluate, paper_protocol
from fsa2lrnn.training.run_folder import MODEL
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import (
    Diverged,
    Progress,
    TrainingOutcome,
    TrainingRun,
    autocast,
    mean_loss,
    prepare_words,
    side_by_side,
    train,
    train_together,
)
from fsa2lrnn.training.trainer import Stop, use_threads

Weights = dict[str, Tensor]


def train_stacked(
    jobs: Sequence[tuple[Settings, Path]],
    resume: bool = True,
    report: Callable[[Progress], None] | None = None,
    write_to: Collection[str] = (),
) -> list[TrainingOutcome | Diverged]:
    """Train several runs in their folders at once, and return one outcome per run.

    The outcomes equal those of `fsa2lrnn.training.train.train` up to rounding. The outcome of a run that diverges is
    the error, and the others continue. With `resume`, runs continue from their checkpoints; runs at an earlier step
    catch up first.

    Raises:
        UnsupportedFormat: without CUDA graphs, if settings differ in more than the seed; for unknown trackers in
            `write_to`; and whenever `train` raises it.
        MissingPackage: if a tracker is not installed.
        CheckpointError: whenever `train` raises it.
    """
    settings = jobs[0][0]
    replays = all(each.cuda_graph for each, _ in jobs)
    if not replays and (others := [each for each, _ in jobs if each.with_seed(settings.seed) != settings]):
        raise UnsupportedFormat(f"{others[0]} and {settings} differ in more than the seed: train them one by one")
    if replays:
        return train_together(jobs, side_by_side, resume, report, write_to)
    drawn = prepare_words(settings)
    losses = StackedLosses(settings.network(drawn.alphabet, drawn.outputs), settings)
    return train_together(jobs, partial(update, losses=losses), resume, report, write_to)


def update(runs: Sequence[TrainingRun], losses: StackedLosses) -> list[Diverged | None]:
    """Take one training step of all runs together; return per run None, or the error if it diverged."""
    begun = time.monotonic()
    batches = [run.draw() for run in runs]
    values = losses([run.model for run in runs], *(torch.stack(part) for part in zip(*batches, strict=True)))
    for run in runs:
        run.trainer.optimiser.zero_grad()
    # The loss of a run depends on its own weights only, so the gradient of the sum is that of each run's loss.
    values.sum().backward()
    errors: list[Diverged | None] = []
    for run, batch, loss in zip(runs, batches, values.detach(), strict=True):
        try:
            run.descend(loss, batch.tokens, begun)
            errors.append(None)
        except Diverged as error:
            errors.append(error)
    return errors


class StackedLosses:
    """A function that computes the losses of several models of one configuration together, each on its own words."""

    def __init__(self, config: LRNNConfig, settings: Settings) -> None:
        with on_meta_device():
            self._network = _WeightlessNetwork(config)
        # On a CPU, where stacking serves tests only, the sequential scan is the one that vmap supports.
        self._method = "sequential" if settings.device == "cpu" else "auto"
        self._settings = settings
        together = vmap(self._loss, in_dims=(0, None, 0, 0))
        self._together = torch.compile(together) if settings.compile else together

    def __call__(self, models: Sequence[LRNN], tokens: Tensor, labels: Tensor) -> Tensor:
        """Return the losses (S,) of S models on tokens and labels (S, B, T), with gradients to all models' weights."""
        named = [dict(model.named_parameters()) for model in models]
        weights = {name: torch.stack([each[name] for each in named]) for name in named[0]}
        return self._together(weights, dict(models[0].named_buffers()), tokens, labels)

    def _loss(self, weights: Weights, buffers: Weights, tokens: Tensor, labels: Tensor) -> Tensor:
        with autocast(self._settings):
            logits = functional_call(self._network, {**weights, **buffers}, (tokens, self._method))
            return mean_loss(logits, labels)


class _WeightlessNetwork(LRNN):
    """An LRNN whose weights are arguments of `functional_call`."""

    def _check_tokens(self, tokens: Tensor) -> None:
        """Check nothing: tokens come from a sampler, and their values are not accessible under vmap."""


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
) -> list[Record]:
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


def run_stacked(jobs: Sequence[tuple[Settings, Path]], plan: RunPlan, report: Report) -> list[Record]:
    """Train all runs as one batched model in this process, evaluate each, and return their results."""
    outcomes = train_stacked(jobs, plan.resume, report, plan.write_to)
    return [_result(*job, outcome, plan, report) for job, outcome in zip(jobs, outcomes, strict=True)]


def run_seed(settings: Settings, folder: Path, plan: RunPlan, report: Report) -> Record:
    """Train and evaluate one run in this process; return the result, which is also written to `folder`/result.json."""
    try:
        outcome = train(settings, folder, plan.resume, report, plan.write_to)
    except Diverged as error:
        outcome = error
    return _result(settings, folder, outcome, plan, report)


def _result(
    settings: Settings, folder: Path, outcome: TrainingOutcome | Diverged, plan: RunPlan, report: Report
) -> Record:
    """Evaluate the outcome of a run and write `result.json`; return its content. A run that diverged has an "error"."""
    result: Record = {"seed": settings.seed, "folder": str(folder)}
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


def _in_processes(jobs: list[tuple[Settings, Path]], plan: RunPlan, report: Report) -> list[Record]:
    """Run the jobs in processes, as many at once as there are cores for their threads, and report their events here."""
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


def run_in_a_process(settings: Settings, folder: Path, plan: RunPlan, put: Report, stop: Stop) -> Record:
    """Train and evaluate one run in another process, forward its events, return its result or {"failed": reason}.

    Every run has a pool of its own, because a process that dies breaks its whole pool.
    """
    interrupted: Record = {"seed": settings.seed, "folder": str(folder), "end": "interrupted"}
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


def _listen(receiver: Connection, sender: Connection, future: Future[Record], put: Report, stop: Stop) -> None:
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


def _attempt(settings: Settings, folder: Path, plan: RunPlan) -> Record:
    return run_seed(settings, folder, plan, _send)
