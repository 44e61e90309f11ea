"""Runs stacked into one batched model end as runs by themselves do, whatever becomes of the others."""

import json
import math
import os
import signal
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.distributed import stacked
from fsa2lrnn.extra.distributed.stacked import StackedLosses, train_stacked
from fsa2lrnn.lrnn import load
from fsa2lrnn.training import train as training
from fsa2lrnn.training.run_folder import METRICS, MODEL
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import Diverged, TrainingRun, train

# Training amplifies rounding errors, which depend on the CPU: in float32 beyond any tolerance that would show a fault.
TINY = Settings(
    "task:mod_arith(2)", embedding_dim=4, block=2, heads=2, layers=2, batch=4, length=6, test_length=9, test_words=5,
    steps=12, evaluate_every=4, stop_at=None, learning_rate=1e-2, dtype="float64",
)  # fmt: skip
SEEDS = (0, 1, 5)
HOUSEHOLDER = {"layer": "householder", "options": {"factors": 2}, "normalisation": "none"}
OTHER = {"token_shift": True, "connection": "concat", "normalisation": "clip", "gradient_clip": 0.1, "layers": 1}


def jobs(settings, folder, seeds=SEEDS):
    return [(settings.with_seed(seed), folder / f"seed-{seed}") for seed in seeds]


def assert_close(outcome, other):
    for one, two in zip(outcome.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-7, atol=1e-7)
    assert [r["step"] for r in outcome.records] == [r["step"] for r in other.records]
    for name in ("loss", "gradient_norm", "weight_norm", "learning_rate"):
        one, two = ([record[name] for record in each.records] for each in (outcome, other))
        assert one == pytest.approx(two, rel=1e-6)


@pytest.mark.parametrize(
    "changes", [{}, OTHER, HOUSEHOLDER, {"optimiser": "adamw", "weight_decay": 0.1, "schedule": "cosine"}]
)
def test_stacked_runs_are_separate_runs_up_to_rounding(tmp_path, changes, read_records):
    settings = replace(TINY, **changes)
    outcomes = train_stacked(jobs(settings, tmp_path / "stacked"))
    for (own, folder), outcome in zip(jobs(settings, tmp_path / "stacked"), outcomes, strict=True):
        alone = train(own, tmp_path / f"alone-{own.seed}")
        assert outcome.end == alone.end == "steps"
        assert_close(outcome, alone)
        assert read_records(folder) == outcome.records
        assert json.loads((folder / "settings.json").read_text())["seed"] == own.seed
        saved = load(folder / MODEL).state_dict()
        assert all(torch.equal(saved[name], weight) for name, weight in outcome.model.state_dict().items())


def test_every_step_has_the_losses_and_gradients_of_separate_models(tmp_path):
    settings = replace(TINY, dtype="float32", batch=64, length=20)
    runs = [TrainingRun(*job, resume=False) for job in jobs(settings, tmp_path)]
    batches = [run.draw() for run in runs]
    losses = StackedLosses(runs[0].model.config, settings)
    found = losses([run.model for run in runs], *(torch.stack(part) for part in zip(*batches, strict=True)))
    found.sum().backward()
    for run, batch, loss in zip(runs, batches, found, strict=True):
        gradients = [weight.grad for weight in run.model.parameters()]
        wanted = training.mean_loss(run.model(batch.tokens), batch.labels)
        torch.testing.assert_close(loss, wanted)
        for one, other in zip(gradients, torch.autograd.grad(wanted, list(run.model.parameters())), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_a_stack_goes_on_from_separate_runs_that_stand_at_different_steps(tmp_path):
    """And the other way round: the folders are the same."""
    for seed, steps in ((0, 4), (1, 8)):
        train(replace(TINY, steps=steps).with_seed(seed), tmp_path / f"seed-{seed}")
    train_stacked(jobs(replace(TINY, steps=8), tmp_path))
    for own, folder in jobs(TINY, tmp_path):
        assert_close(train(own, folder), train(own, tmp_path / f"alone-{own.seed}"))
        steps = [json.loads(line)["step"] for line in (folder / METRICS).read_text().splitlines()]
        assert steps == [4, 8, 12]


def test_a_run_that_ends_early_leaves_the_others_as_they_are(tmp_path, monkeypatch):
    """One has reached its accuracy, one diverges: the third is what it is alone."""
    count = training.count

    def counted(model, words, length, n_words, generator):
        found = count(model, words, length, n_words, generator)
        return replace(found, last=n_words if generator.initial_seed() == 1 else 0)

    descend = TrainingRun.descend

    def broken(run, loss, tokens, begun):
        if run.settings.seed == 1 and run.step == 6:
            loss = loss * math.nan
        descend(run, loss, tokens, begun)

    settings = replace(TINY, stop_at=1.0)
    monkeypatch.setattr(training, "count", counted)
    alone = train(settings.with_seed(5), tmp_path / "alone")
    monkeypatch.setattr(TrainingRun, "descend", broken)
    first, second, third = train_stacked(jobs(settings, tmp_path))
    assert (first.end, first.step) == ("stop_at", 4)
    assert isinstance(second, Diverged)
    assert str(second).startswith("training diverged at step 7: the loss is nan")
    assert "checkpoint of step 4 is kept" in str(second)
    assert (third.end, third.step) == ("steps", 12)
    assert_close(third, alone)


def test_divergence_that_shows_at_a_test_or_at_the_end_is_dated(tmp_path, monkeypatch):
    monkeypatch.setitem(training._READ_STEPS, "cpu", 8)
    for every in (3, 12):
        settings = replace(TINY, learning_rate=1e200, evaluate_every=every, steps=4 if every == 12 else 12)
        outcomes = train_stacked(jobs(settings, tmp_path / str(every)))
        assert all(isinstance(outcome, Diverged) for outcome in outcomes)
        assert all(str(outcome).startswith("training diverged at step 2") for outcome in outcomes)


def test_ctrl_c_saves_every_run(tmp_path, monkeypatch):
    monkeypatch.setattr(stacked, "_REPORT_SECONDS", 0.0)
    settings = replace(TINY, steps=1_000_000, evaluate_every=1_000_000)
    reports = []

    def report(progress):
        reports.append(progress)
        if progress.step == 3 and progress.seed == 5:
            os.kill(os.getpid(), signal.SIGINT)

    outcomes = train_stacked(jobs(settings, tmp_path), report=report)
    assert [(outcome.end, outcome.step) for outcome in outcomes] == [("interrupted", 3)] * 3
    assert {progress.seed for progress in reports} == set(SEEDS)
    again = train_stacked(jobs(replace(settings, steps=5), tmp_path))
    for (own, _), outcome in zip(jobs(settings, tmp_path), again, strict=True):
        assert_close(outcome, train(replace(own, steps=5), tmp_path / f"alone-{own.seed}"))


def test_settings_that_differ_are_not_stacked(tmp_path):
    with pytest.raises(UnsupportedFormat, match="differ in more than the seed: train them one by one"):
        train_stacked([(TINY, tmp_path / "a"), (replace(TINY, seed=1, batch=5), tmp_path / "b")])


def test_each_run_has_a_writer_of_its_own(tmp_path, monkeypatch):
    written = []

    @contextmanager
    def writers(names, settings, folder, resume):
        assert (names, settings.seed, resume) == (("tensorboard",), int(folder.name[-1]), True)
        yield lambda record: written.append((folder.name, record))

    monkeypatch.setattr(stacked, "record_writers", writers)
    outcomes = train_stacked(jobs(replace(TINY, steps=4), tmp_path), write_to=("tensorboard",))
    assert written == [(f"seed-{s}", outcome.records[0]) for s, outcome in zip(SEEDS, outcomes, strict=True)]
