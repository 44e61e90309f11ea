"""Runs that are stacked, and replayed."""

import json
import math
import os
import signal
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import load
from fsa2lrnn.training import train as training
from fsa2lrnn.training import trainer
from fsa2lrnn.training.run_folder import METRICS, MODEL
from fsa2lrnn.training.seeds import StackedLosses, train_stacked
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import Diverged, TrainingRun, train
from fsa2lrnn.training.trainer import GraphReplay

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


@pytest.mark.long_cases("changes2")
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


@pytest.mark.long
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


@pytest.mark.long
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
    monkeypatch.setattr(training, "REPORT_SECONDS", 0.0)
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


def test_settings_that_differ_and_graphs_in_settings(tmp_path):
    with pytest.raises(UnsupportedFormat, match="differ in more than the seed: train them one by one"):
        train_stacked([(TINY, tmp_path / "a"), (replace(TINY, seed=1, batch=5), tmp_path / "b")])
    replayed = replace(TINY_OF_REPLAY, device="cuda", cuda_graph=True)
    assert Settings.from_json(TINY_OF_REPLAY.to_json()) == TINY_OF_REPLAY
    assert Settings.from_json(replayed.to_json()) == replayed


def test_each_run_has_a_writer_of_its_own(tmp_path, monkeypatch):
    written = []

    @contextmanager
    def writers(names, settings, folder, resume):
        assert (names, settings.seed, resume) == (("tensorboard",), int(folder.name[-1]), True)
        yield lambda record: written.append((folder.name, record))

    monkeypatch.setattr("fsa2lrnn.training.run_folder.record_writers", writers)
    outcomes = train_stacked(jobs(replace(TINY, steps=4), tmp_path), write_to=("tensorboard",))
    assert written == [(f"seed-{s}", outcome.records[0]) for s, outcome in zip(SEEDS, outcomes, strict=True)]


on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="graphs are a GPU's")
TINY_OF_REPLAY = Settings(
    "task:mod_arith(2)", embedding_dim=8, block=4, heads=2, layers=2, batch=16, length=7, test_length=9, test_words=5,
    steps=12, evaluate_every=4, stop_at=None, learning_rate=1e-2,
)  # fmt: skip
BACKBONE = {"connection": "full-residual", "optimiser": "adamw"}
LAYERS = {
    "block": {},
    "householder": {"layer": "householder", "normalisation": "none"},
    "s4": {"layer": "s4", **BACKBONE},
    "s4d": {"layer": "s4d", **BACKBONE},
    "liquid exact": {"layer": "liquid_s4", **BACKBONE},
    "liquid polyb": {"layer": "liquid_s4", "options": {"kernel": "polyb"}, "task": "task:sum_mod(3)", **BACKBONE},
    "s5": {"layer": "s5", **BACKBONE},
    "lru": {"layer": "lru", **BACKBONE},
    "rwkv4": {"layer": "rwkv4", "connection": "chain", "layer_norm": "readout", "gradient_clip": 1.0},
    "vanilla": {"layer": "vanilla", "gradient_clip": 1.0},
}


@pytest.fixture
def stood_in(monkeypatch):
    """Stand-ins for a GPU's streams and graphs: one that is replayed takes the step again."""
    recorded = []

    class Graph:
        def register_generator_state(self, generator):
            recorded.append(generator)

        def replay(self):
            self.step()

    def record(graph, **_):
        graph.step = record.step
        return nullcontext()

    def stream(device):
        return SimpleNamespace(device=device, wait_stream=bool)

    cuda = {
        "Stream": stream, "current_stream": stream, "stream": nullcontext, "graph": record, "CUDAGraph": Graph,
    }  # fmt: skip
    monkeypatch.setattr(trainer.torch, "cuda", SimpleNamespace(**cuda))
    return SimpleNamespace(record=record, recorded=recorded)


def test_a_step_is_recorded_once_after_the_libraries_have_warmed_up(stood_in):
    calls, generator = [], torch.Generator()
    found = torch.zeros(())

    def step():
        calls.append(len(calls))
        return found.fill_(len(calls))

    stood_in.record.step = step
    steps = GraphReplay(step, generator)
    given = [int(steps()) for _ in range(6)]
    assert given[:3] == [1, 2, 3]
    assert given[3:] == [5, 6, 7]  # what is recorded is not run
    assert stood_in.recorded == [generator]


def test_what_a_replay_gave_is_not_overwritten_by_the_next(stood_in):
    found = torch.zeros(())
    stood_in.record.step = lambda: found.add_(1)
    steps = GraphReplay(stood_in.record.step, torch.Generator())
    for _ in range(4):
        steps()
    one, other = steps(), steps()
    assert int(other) == int(one) + 1


def test_a_step_that_cannot_be_recorded_is_refused_in_words(stood_in):
    def step():
        if not stood_in.recorded:
            return torch.zeros(())
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    stood_in.record.step = step
    steps = GraphReplay(step, torch.Generator())
    for _ in range(3):
        steps()
    with pytest.raises(UnsupportedFormat, match=r"recorded as a CUDA graph \(operation .* capturing\): set cuda_graph"):
        steps()


@pytest.mark.parametrize(("changes", "message"), [
    ({"cuda_graph": True}, "cuda_graph = True with device = 'cpu': graphs are a GPU's"),
    ({"cuda_graph": True, "device": "cuda", "schedule": "cosine"}, "a graph holds its learning rate"),
    ({"cuda_graph": 1}, "cuda_graph = 1 must be true or false"),
])  # fmt: skip
def test_settings_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(UnsupportedFormat, match=message):
        replace(TINY_OF_REPLAY, **changes)


@on_a_gpu
@pytest.mark.parametrize("name", LAYERS)
def test_replayed_steps_are_steps(name, tmp_path):
    settings = replace(TINY_OF_REPLAY, device="cuda", **LAYERS[name])
    alone = train(settings, tmp_path / "alone")
    replayed = train(replace(settings, cuda_graph=True), tmp_path / "replayed")
    for one, other in zip(replayed.model.parameters(), alone.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    for one, other in zip(replayed.records, alone.records, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-3)


@on_a_gpu
@pytest.mark.parametrize("name", LAYERS)
def test_a_gpu_gives_what_the_cpu_gives(name, tmp_path):
    settings = replace(TINY_OF_REPLAY, dtype="float64", **LAYERS[name])
    run = TrainingRun(settings, tmp_path, resume=False)
    batch = run.words.batch(5, 70, run.words.generator(0))
    outputs, gradients = [], []
    for device in ("cpu", "cuda"):
        model = run.model.to(device)
        logits = model(batch.tokens.to(device))
        found = torch.autograd.grad(logits.square().sum(), list(model.parameters()), materialize_grads=True)
        outputs.append(logits.detach().cpu())
        gradients.append([gradient.cpu() for gradient in found])
    torch.testing.assert_close(*outputs, rtol=1e-8, atol=1e-9)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


@on_a_gpu
def test_replays_side_by_side_are_replays_alone(tmp_path):
    wanted = [
        replace(TINY_OF_REPLAY, device="cuda", cuda_graph=True, **LAYERS[name]) for name in ("block", "s4", "rwkv4")
    ]
    together = train_stacked([(each, tmp_path / f"together-{i}") for i, each in enumerate(wanted)])
    for i, (settings, outcome) in enumerate(zip(wanted, together, strict=True)):
        alone = train(settings, tmp_path / f"alone-{i}")
        for one, other in zip(outcome.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@on_a_gpu
def test_a_replayed_run_goes_on_where_it_stood(tmp_path):
    settings = replace(TINY_OF_REPLAY, device="cuda", cuda_graph=True, layer="s4d", **BACKBONE)
    train(replace(settings, steps=8), tmp_path / "halved")
    halved, whole = train(settings, tmp_path / "halved"), train(settings, tmp_path / "whole")
    for one, other in zip(halved.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
