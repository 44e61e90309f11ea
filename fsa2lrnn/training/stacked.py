"""Train several runs at once in one process, for GPUs on which kernel launches dominate a step.

Runs that differ only in their seed become one batched model: the weights of all are stacked along a new axis and the
network is mapped over it (`torch.func.vmap`), so that each operation is launched once for all runs. Runs with CUDA
graphs (`fsa2lrnn.training.replay`) replay them in parallel instead. Each run has its own words, gradient norm,
optimiser, evaluations, records and folder, as in `fsa2lrnn.training.train`; the others continue when one ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import alone
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.tensor_file import on_meta_device
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import (
    Diverged,
    Progress,
    Stop,
    TrainingOutcome,
    TrainingRun,
    autocast,
    mean_loss,
    use_threads,
)
from fsa2lrnn.training.writers import check_writers, record_writers

Weights = dict[str, Tensor]

_REPORT_SECONDS = 0.5


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
        UnsupportedFormat: without CUDA graphs, if settings differ in more than the seed or have a drift penalty; for
            unknown trackers in `write_to`; and whenever `train` raises it.
        MissingPackage: if a tracker is not installed.
        CheckpointError: whenever `train` raises it.
    """
    settings = jobs[0][0]
    replays = all(each.cuda_graph for each, _ in jobs)
    if not replays and (others := [each for each, _ in jobs if each.with_seed(settings.seed) != settings]):
        raise UnsupportedFormat(f"{others[0]} and {settings} differ in more than the seed: train them one by one")
    if not replays and settings.drift_penalty:
        raise UnsupportedFormat(
            f"drift_penalty = {settings.drift_penalty!r} is not for stacked runs: train them one by one"
        )
    check_writers(write_to)
    diverged: dict[int, Diverged] = {}
    with ExitStack() as held, use_threads(settings.threads), Stop() as stop:
        for _, folder in jobs:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(alone(folder, "run"))
        runs = [TrainingRun(*job, resume) for job in jobs]
        writers = [held.enter_context(record_writers(write_to, *job, resume)) for job in jobs]
        step = side_by_side if replays else partial(update, losses=StackedLosses(runs[0].model.config, settings))
        reported = time.monotonic()
        while not stop.asked and (active := [i for i, r in enumerate(runs) if i not in diverged and not r.is_done]):
            # Only runs at the earliest step take part, so that resumed runs catch up.
            last = min(runs[i].step for i in active)
            active = [i for i in active if runs[i].step == last]
            errors = step([runs[i] for i in active])
            is_time = time.monotonic() - reported > _REPORT_SECONDS
            for i, error in zip(active, errors, strict=True):
                try:
                    if error is not None:
                        raise error
                    record = runs[i].test_and_save() if runs[i].is_test_due else None
                except Diverged as divergence:
                    diverged[i] = divergence
                    continue
                if record is not None:
                    writers[i](record)
                if report is not None and (record or is_time):
                    report(runs[i].progress(record))
                    reported = time.monotonic()
        for i, run in enumerate(runs):
            try:
                if i not in diverged:
                    run.finish()
            except Diverged as error:
                diverged[i] = error
    return [diverged.get(i) or run.outcome() for i, run in enumerate(runs)]


def side_by_side(runs: Sequence[TrainingRun]) -> list[Diverged | None]:
    """Take one training step of each run separately; return per run None, or the error if it diverged."""
    errors: list[Diverged | None] = []
    for run in runs:
        try:
            run.update()
            errors.append(None)
        except Diverged as error:
            errors.append(error)
    return errors


def update(runs: Sequence[TrainingRun], losses: StackedLosses) -> list[Diverged | None]:
    """Take one training step of all runs together; return per run None, or the error if it diverged."""
    begun = time.monotonic()
    batches = [run.draw() for run in runs]
    values = losses([run.model for run in runs], *(torch.stack(part) for part in zip(*batches, strict=True)))
    for run in runs:
        run.trainer.optimiser.zero_grad()
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
