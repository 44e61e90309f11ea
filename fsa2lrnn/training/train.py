"""Training of one network on the words of one machine: one seed, one folder, resumable bit for bit on one computer.

The procedure is the paper's: one batch of fresh words per step, cross-entropy over the counted outputs, Adam. Every
`evaluate_every` steps the network is evaluated on fresh longer words, and the measurements are written to the folder
together with a checkpoint.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError, UnsupportedFormat, check_type
from fsa2lrnn.files import alone
from fsa2lrnn.nn.checkpoint import load, save
from fsa2lrnn.nn.layer_checks import check_layers
from fsa2lrnn.nn.layers.base import Hint
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training import run_folder
from fsa2lrnn.training.data import Batch, TaskWords, make_sampler, words
from fsa2lrnn.training.evaluate import Record, count
from fsa2lrnn.training.settings import OPTIMISERS, Settings
from fsa2lrnn.training.trainer import Stop, Trainer, use_threads

_SAVE_SECONDS, REPORT_SECONDS = 60.0, 0.5
_READ_STEPS = {"cpu": 1, "cuda": 50}  # steps between readings of the loss, which synchronise with a GPU


Step = Callable[[Sequence["TrainingRun"]], "list[Diverged | None]"]  # of runs at one step; None or the error, per run


class Diverged(Fsa2LrnnError, ArithmeticError):
    """The error for a loss or a gradient that is not finite."""


class Progress(NamedTuple):
    """The progress of a run after `step` of `steps` steps; `record` is the evaluation of this step or None."""

    seed: int
    step: int
    steps: int
    loss: float
    accuracy: float | None
    steps_per_second: float
    record: Record | None


@dataclass(frozen=True)
class TrainingOutcome:
    """The result of a call of `train`; `end` is "steps" (all done), "stop_at" (accuracy reached) or "interrupted"."""

    end: str
    step: int
    model: LRNN
    words: TaskWords
    records: list[Record]


def train(
    settings: Settings,
    folder: str | Path,
    resume: bool = True,
    report: Callable[[Progress], None] | None = None,
    write_to: Collection[str] = (),
) -> TrainingOutcome:
    """Train a network in `folder` and return the outcome; resume from the checkpoint there if `resume` is set.

    `write_to` names trackers that get the records too, "tensorboard" or "wandb" (offline if WANDB_MODE says so).

    The first SIGINT (Ctrl-C) or SIGTERM saves after the step and returns; a second one ends the process.

    Raises:
        Diverged: with the step and the norms that grew; the last checkpoint stays.
        FalseDeclaration: before the first step, for a user-defined layer that contradicts its declaration.
        UnsupportedFormat: if the settings do not fit the machine or the folder, or another run uses the folder.
        MissingPackage: if a package that `write_to` names is not installed.
        CheckpointError: if the checkpoint in the folder cannot be read.
    """
    check_type(settings, Settings, "settings", 'Settings("task:parity", layer=…), or preset("quick", "task:parity")')
    (outcome,) = train_together([(settings, Path(folder))], side_by_side, resume, report, write_to)
    if isinstance(outcome, Diverged):
        raise outcome
    return outcome


def train_together(
    jobs: Sequence[tuple[Settings, Path]],
    step: Step,
    resume: bool,
    report: Callable[[Progress], None] | None,
    write_to: Collection[str],
) -> list[TrainingOutcome | Diverged]:
    """Train runs in their folders, each `step` some of them by one update, and return an outcome per run.

    The outcome of a run that diverges is the error, and the others continue. Runs that resume at an earlier step catch
    up first. Raises as `train` does before the first step.
    """
    from fsa2lrnn.training.run_folder import check_writers, record_writers

    check_writers(write_to)
    diverged: dict[int, Diverged] = {}
    with ExitStack() as held, use_threads(jobs[0][0].threads), Stop() as stop:
        for _, folder in jobs:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(alone(folder, "run"))
        runs = [TrainingRun(*job, resume) for job in jobs]
        trackers = [held.enter_context(ExitStack()) for _ in jobs]
        writers = [
            own.enter_context(record_writers(write_to, *job, resume)) for own, job in zip(trackers, jobs, strict=True)
        ]
        reported = time.monotonic()
        while not stop.asked and (active := [i for i, r in enumerate(runs) if i not in diverged and not r.is_done]):
            # Only runs at the earliest step take part, so that resumed runs catch up.
            last = min(runs[i].step for i in active)
            active = [i for i in active if runs[i].step == last]
            errors = step([runs[i] for i in active])
            is_time = time.monotonic() - reported > REPORT_SECONDS
            for i, error in zip(active, errors, strict=True):
                try:
                    if error is not None:
                        raise error
                    record = runs[i].test_and_save() if runs[i].is_test_due else None
                except Diverged as divergence:
                    diverged[i] = divergence
                    trackers[i].__exit__(Diverged, divergence, None)  # they mark the run as failed
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


def prepare_words(settings: Settings) -> TaskWords:
    """Return the words of the settings' task and sampler. Raises `UnsupportedFormat` if only one output counts."""
    machine = settings.machine()
    sampler = make_sampler(settings.sampler, machine, settings.task)
    drawn = words(machine, sampler, load(settings.start).outputs if settings.start else None, settings.device)
    if len(drawn.outputs) < 2:
        raise UnsupportedFormat(
            f"{settings.task} under the sampler {settings.sampler!r} has the outputs {drawn.outputs} and no other, so "
            'that there is nothing to learn: take the sampler "uniform" or another machine'
        )
    return drawn


def parameter_groups(model: LRNN, settings: Settings) -> dict[Hint, dict[str, Any]]:
    """Return the optimiser's parameter groups by `Hint`, each with the parameters that have this hint."""
    hints, groups = model.parameter_hints(), dict[Hint, dict[str, Any]]()
    for name, weight in model.named_parameters():
        hint = hints.get(name, Hint())
        decay = settings.weight_decay if hint.decay is None else hint.decay
        groups.setdefault(hint, {"params": [], "weight_decay": decay})["params"].append(weight)
    return groups


class _StepRecord(NamedTuple):
    loss: float
    gradient_norm: float


class TrainingRun:
    """A run of training: the state that `checkpoint.bin` stores, and the clock.

    Raises `UnsupportedFormat` if `settings.device` is a GPU that torch does not have.
    """

    def __init__(self, settings: Settings, folder: Path, resume: bool) -> None:
        if settings.device != "cpu" and not torch.cuda.is_available():
            raise UnsupportedFormat(f"device {settings.device!r}: torch sees no GPU here; use cpu")
        self.settings, self.folder = settings, folder
        self.words = prepare_words(settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            model = LRNN(settings.network(self.words.alphabet, self.words.outputs))
        if settings.start:
            model.load_state_dict(load(settings.start).state_dict())
        self.model = model.to(settings.device, getattr(torch, settings.dtype))
        check_layers(self.model)
        self.forward = torch.compile(self.model) if settings.compile else self.model
        groups = parameter_groups(self.model, settings)
        self.hints = list(groups)
        betas, kind = (0.9, settings.beta2), OPTIMISERS[settings.optimiser]
        optimiser = kind(groups.values(), settings.learning_rate, betas, fused=True, capturable=settings.cuda_graph)
        self.trainer = Trainer(self.model, optimiser)
        # Separate generators, so that the number of evaluations does not change the training words.
        self.training, self.testing = (self.words.generator(2 * settings.seed + i) for i in (0, 1))
        self.generators = {"training": self.training, "testing": self.testing}
        self.length, self.test_length = self.words.fit(settings.length), self.words.fit(settings.test_length)
        self.step, self.saved_step, self.records = 0, -1, []
        self.since_test = run_folder.IntervalStatistics()
        expected = self.trainer.shapes(**self.generators)
        if (checkpoint := run_folder.prepare(folder, settings, resume, expected)) is not None:
            self._restore(*checkpoint)
        self.read_step, self.pending = self.step, []  # [loss, gradient norm] of the steps after `read_step`
        self.last, self.last_weight_norm = _StepRecord(math.nan, math.nan), self.weight_norm()
        self.busy, self.busy_steps, self.saved_at = 0.0, 0, time.monotonic()
        self._replay = None
        if settings.cuda_graph:
            from fsa2lrnn.training.trainer import GraphReplay

            self._replay = GraphReplay(self._whole_step, self.training)

    @property
    def is_good_enough(self) -> bool:
        stop_at = self.settings.stop_at
        return stop_at is not None and any(record["accuracy"] >= stop_at for record in self.records)

    @property
    def is_done(self) -> bool:
        return self.step >= self.settings.steps or self.is_good_enough

    @property
    def is_test_due(self) -> bool:
        return self.step % self.settings.evaluate_every == 0 or self.step == self.settings.steps

    def update(self) -> None:
        """Take one training step."""
        begun = time.monotonic()
        if self._replay is not None:
            self._note(self._replay())
            self._count(begun)
            return
        batch = self.draw()
        self.descend(self._gradient(batch), batch.tokens, begun)

    def draw(self) -> Batch:
        """Return the batch of words of the next step."""
        return self.words.batch(self.settings.batch, self.length, self.training)

    def descend(self, loss: Tensor, tokens: Tensor, begun: float) -> None:
        """Apply the optimiser to the current gradients, for a step that began at time `begun`, in seconds."""
        self._note(self._descend(loss), tokens)
        self._count(begun)

    def _whole_step(self) -> Tensor:
        """Take one step and return its loss and gradient norm, (2,), without waiting for the device."""
        return self._descend(self._gradient(self.draw()))

    def _gradient(self, batch: Batch) -> Tensor:
        with autocast(self.settings):
            loss = mean_loss(self.forward(batch.tokens), batch.labels)
        return self.trainer.backward(loss)

    def _descend(self, loss: Tensor) -> Tensor:
        # Loss and norm stay on the device, because reading them would wait for it.
        measured = torch.stack([loss, self.trainer.clip(self.settings.gradient_clip)])
        self.trainer.update(self.settings.rate(self.step, hint) for hint in self.hints)
        return measured

    def _note(self, measured: Tensor, tokens: Tensor | None = None) -> None:
        self.pending.append(measured)
        if len(self.pending) >= _READ_STEPS[self.words.device.type]:
            self.read_pending(tokens)

    def _count(self, begun: float) -> None:
        self.step += 1
        self.busy, self.busy_steps = self.busy + time.monotonic() - begun, self.busy_steps + 1
        if time.monotonic() - self.saved_at > _SAVE_SECONDS:
            self.save()

    def read_pending(self, tokens: Tensor | None = None) -> None:
        """Read the pending losses and gradient norms; `tokens` are the words of the last step.

        Raises `Diverged` at the first that is not finite.
        """
        if self._replay is not None:
            self._replay.wait()
        steps = [_StepRecord(*pair) for pair in torch.stack(self.pending).tolist()] if self.pending else []
        self.pending.clear()
        for step in steps:
            self.read_step += 1
            if not (math.isfinite(step.loss) and math.isfinite(step.gradient_norm)):
                raise Diverged(self._explanation(step, tokens))
            self.last = step
            since = self.since_test
            since.loss, since.steps = since.loss + step.loss, since.steps + 1
            since.gradient_norm = max(since.gradient_norm, step.gradient_norm)

    def test_and_save(self) -> Record:
        """Evaluate the network on fresh words, write a checkpoint and the record, and return the record."""
        self.read_pending()
        tested = count(self.model, self.words, self.test_length, self.settings.test_words, self.testing)
        record = {
            "step": self.step,
            "loss": self.since_test.loss / self.since_test.steps,
            "accuracy": tested.last / tested.words,
            "word_accuracy": tested.whole / tested.words,
            "length": tested.length,
            "words": tested.words,
            "gradient_norm": self.since_test.gradient_norm,
            "weight_norm": self.weight_norm(),
            "learning_rate": self.settings.rate(self.step - 1),
            "steps_per_second": self.steps_per_second,
        }
        self.records.append(record)
        self.last_weight_norm = record["weight_norm"]
        self.since_test, self.busy, self.busy_steps = run_folder.IntervalStatistics(), 0.0, 0
        self.save()
        run_folder.write_records(self.folder, self.records)
        return record

    @property
    def steps_per_second(self) -> float:
        return self.busy_steps / self.busy if self.busy else 0.0

    def weight_norm(self) -> float:
        """Return the norm of all weights."""
        return float(torch.stack([weight.detach().norm() for weight in self.model.parameters()]).norm())

    def save(self) -> None:
        """Write a checkpoint, after a check that the losses so far are finite."""
        self.read_pending()
        evaluations = tuple(run_folder.Evaluation(**record) for record in self.records)
        state = run_folder.RunState(self.step, evaluations, self.since_test)
        tensors = self.trainer.tensors(**self.generators)
        run_folder.write_state(self.folder / run_folder.CHECKPOINT, run_folder.FORM, state, tensors)
        save(self.model, self.folder / run_folder.MODEL)
        self.saved_step, self.saved_at = self.step, time.monotonic()

    def finish(self) -> None:
        """Save the run if its last step is not saved yet."""
        if self.saved_step != self.step:
            self.save()

    def progress(self, record: Record | None) -> Progress:
        """Return the progress of the run, with the record of an evaluation or None."""
        accuracy = self.records[-1]["accuracy"] if self.records else None
        rate = record["steps_per_second"] if record else self.steps_per_second
        return Progress(self.settings.seed, self.step, self.settings.steps, self.last.loss, accuracy, rate, record)

    def outcome(self) -> TrainingOutcome:
        """Return the outcome of the run, for use at its end."""
        end = "stop_at" if self.is_good_enough else "steps" if self.step >= self.settings.steps else "interrupted"
        return TrainingOutcome(end, self.step, self.model, self.words, self.records)

    def _restore(self, state: run_folder.RunState, tensors: Mapping[str, Tensor]) -> None:
        try:
            self.trainer.restore(tensors, **self.generators)
        except CheckpointError as error:
            raise CheckpointError(f"{self.folder}: {error}") from error
        self.step, self.records = state.step, [asdict(record) for record in state.records]
        self.saved_step, self.since_test = self.step, state.since_test
        save(self.model, self.folder / run_folder.MODEL)  # in case a full disk left an older one

    def _explanation(self, step: _StepRecord, tokens: Tensor | None) -> str:
        """Return the message of `Diverged`: norms now and before, the sizes of states, and a remedy."""
        norms = {
            "loss": (step.loss, self.last.loss),
            "norm of its gradient": (step.gradient_norm, self.last.gradient_norm),
            "norm of the weights": (self.weight_norm(), self.last_weight_norm),
        }
        facts = [f"the {name} is {now:.3g} (before: {before:.3g})" for name, (now, before) in norms.items()]
        if tokens is not None:
            with torch.no_grad():
                _, after = self.model.advance(tokens, self.model.initial_state(len(tokens)))
            facts += [f"the states of layer {i} reach {float(x.abs().max()):.3g}" for i, (x, _) in enumerate(after)]
        saved = f"checkpoint of step {self.saved_step:,} is kept" if self.saved_step >= 0 else "nothing was saved yet"
        return (
            f"training diverged at step {self.read_step:,}: {', '.join(facts)}; {saved}. Lower learning_rate, now "
            f"{self.settings.rate(self.read_step - 1):.3g}, or set gradient_clip, now {self.settings.gradient_clip}"
        )


def autocast(settings: Settings) -> torch.autocast:
    """Return the autocast context in which the network and its loss are computed."""
    device = settings.device.partition(":")[0]
    return torch.autocast(device, torch.bfloat16, enabled=settings.precision == "mixed")


def mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy over the counted outputs: (B, T, |Γ|), (B, T) -> ()."""
    return cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=UNCOUNTED)
