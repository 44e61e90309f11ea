"""Training learns, and says why it ends; how it goes on where it was cut short, test_train_cut_short says."""

import json
import sys
import time
from dataclasses import replace

import pytest
import torch

from fsa2lrnn import compile_machine, load, save, zoo
from fsa2lrnn.errors import MissingPackage, UnsupportedFormat
from fsa2lrnn.training import train as training
from fsa2lrnn.training.run_folder import CHECKPOINT
from fsa2lrnn.training.settings import Settings, preset
from fsa2lrnn.training.train import Diverged, Progress, train
from fsa2lrnn.training.trainer import use_threads

from .runs import TINY, equal, weights


def test_runs_leave_their_folder(straight, read_records):
    outcome, folder = straight
    assert (outcome.end, outcome.step) == ("steps", 20)
    assert equal(outcome.model.state_dict(), weights(folder))
    records = read_records(folder)
    assert outcome.records == records
    assert [record["step"] for record in records] == [5, 10, 15, 20]
    assert {record["length"] for record in records} == {9}
    assert all(record["words"] == 5 and 0 <= record["word_accuracy"] <= record["accuracy"] <= 1 for record in records)
    assert Settings.from_json((folder / "settings.json").read_text()) == TINY
    assert outcome.model.outputs == (0, 1)  # those after digits


def test_seeds_decide_and_tests_have_words_of_their_own(straight, tmp_path):
    torch.manual_seed(99)
    before = torch.get_rng_state()
    train(replace(TINY, evaluate_every=20, test_words=1), tmp_path / "same")
    assert torch.equal(torch.get_rng_state(), before)
    assert equal(weights(tmp_path / "same"), weights(straight[1]))
    train(replace(TINY, seed=1), tmp_path / "other")
    assert not equal(weights(tmp_path / "other"), weights(straight[1]))
    run = training.TrainingRun(TINY, tmp_path, resume=False)
    first, second = (run.words.batch(64, 9, generator).tokens for generator in (run.training, run.testing))
    assert not torch.equal(first, second)


def test_time_saves_too(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_SAVE_SECONDS", 0.0)
    monkeypatch.setattr(training, "REPORT_SECONDS", 0.0)
    saved = []
    train(replace(TINY, steps=3), tmp_path, report=lambda _: saved.append((tmp_path / CHECKPOINT).exists()))
    assert saved == [True] * 3


def test_training_stops_at_the_accuracy_and_gives_threads_back(tmp_path):
    settings = replace(TINY, task="task:sum_mod(2)", layers=1, stop_at=0.01, steps=1000)
    outcome = train(settings, tmp_path)
    assert outcome.end == "stop_at"
    assert outcome.step < 1000
    assert train(settings, tmp_path).step == outcome.step  # nothing is left to do
    assert train(replace(settings, stop_at=None, steps=outcome.step + 5), tmp_path).end == "steps"
    assert not training.autocast(TINY)._enabled
    if torch.cuda.is_available():
        mixed = training.autocast(replace(TINY, device="cuda", precision="mixed"))
        assert mixed._enabled
        assert mixed.fast_dtype == torch.bfloat16
    before = torch.get_num_threads()
    with use_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_divergence_names_the_step_and_the_norms(tmp_path, read_records):
    with pytest.raises(Diverged) as caught:
        train(replace(TINY, learning_rate=1e30, evaluate_every=1), tmp_path)
    message = str(caught.value)
    assert message.startswith("training diverged at step 2: the loss is ")
    for piece in ("(before: 0.", "norm of its gradient", "norm of the weights is ", "the states of layer 1 reach"):
        assert piece in message
    assert "; checkpoint of step 1 is kept. Lower learning_rate, now 1e+30, or set gradient_clip, now None" in message
    assert len(read_records(tmp_path)) == 1
    assert all(value.isfinite().all() for value in weights(tmp_path).values())


def test_divergence_is_dated_when_looks_are_rare(tmp_path, monkeypatch):
    monkeypatch.setitem(training._READ_STEPS, "cpu", 8)
    with pytest.raises(Diverged, match=r"training diverged at step 2: .*; nothing was saved yet"):
        train(replace(TINY, learning_rate=1e30), tmp_path)
    assert not (tmp_path / CHECKPOINT).exists()


def test_clipping_and_the_schedule_have_an_effect(tmp_path, read_records):
    for name, changes in (
        ("clip", {"gradient_clip": 1e-3}),
        ("cosine", {"schedule": "cosine"}),
        ("w", {"optimiser": "adamw"}),
    ):
        train(replace(TINY, steps=5, **changes), tmp_path / name)
    train(replace(TINY, steps=5), tmp_path / "plain")
    assert not equal(weights(tmp_path / "clip"), weights(tmp_path / "plain"))
    assert not equal(weights(tmp_path / "cosine"), weights(tmp_path / "plain"))
    assert read_records(tmp_path / "cosine")[0]["learning_rate"] < TINY.learning_rate
    assert equal(weights(tmp_path / "w"), weights(tmp_path / "plain"))  # without weight decay they are one


def test_the_losses_are_those_of_the_positions_that_count(tmp_path):
    """One step by hand: cross-entropy over digits alone, and Adam's first step of ± the learning rate."""
    outcome = train(replace(TINY, steps=1, learning_rate=1e-9), tmp_path)
    made = training.prepare_words(TINY)
    tokens, labels = made.batch(TINY.batch, 5, made.generator(0))
    with torch.no_grad():
        logits = outcome.model(tokens)[:, ::2]
    wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, ::2].flatten())
    assert outcome.records[0]["loss"] == pytest.approx(float(wanted), rel=1e-5)


def test_reports_say_where_the_run_is(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "REPORT_SECONDS", 0.0)
    reports: list[Progress] = []
    train(replace(TINY, steps=6), tmp_path, report=reports.append)
    assert [report.step for report in reports] == [1, 2, 3, 4, 5, 6]
    assert [report.record is not None for report in reports] == [False] * 4 + [True, True]
    assert reports[3].accuracy is None
    assert reports[4].accuracy == reports[4].record["accuracy"]
    assert all(report.steps_per_second > 0 for report in reports)


@pytest.mark.parametrize(("changes", "message"), [
    ({"task": "regex:(a|b)*"}, "has the outputs .True,. and no other, so that there is nothing to learn"),
    ({"task": "task:nothing"}, "task 'nothing' is not known"),
    ({"embedding_dim": 5}, "choose block sizes with H·b = embedding_dim"),
    ({"device": "cuda"}, "torch sees no GPU here; use cpu"),
])  # fmt: skip
def test_settings_that_do_not_fit(tmp_path, changes, message):
    if changes.get("device") and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(UnsupportedFormat, match=message):
        train(replace(TINY, **changes), tmp_path)


def test_tensorboard_is_asked_for_before_training_and_reads_what_was_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingPackage, match="needs tensorboard, which is not installed: pip install tensorboard"):
        train(TINY, tmp_path / "run", write_to=("tensorboard",))
    monkeypatch.undo()
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    outcome = train(TINY, tmp_path, write_to=("tensorboard",))
    events = EventAccumulator(str(tmp_path)).Reload()
    names = ("loss", "accuracy", "word_accuracy", "gradient_norm", "weight_norm", "steps_per_second")
    assert set(events.Tags()["scalars"]) == set(names)
    for name in names:
        written = [(event.step, event.value) for event in events.Scalars(name)]
        assert written == [(record["step"], pytest.approx(record[name])) for record in outcome.records]


def test_mixed_precision_rounds_products_and_keeps_weights_whole(straight, tmp_path, monkeypatch):
    """The context of a GPU's settings, on the CPU: the path is the same."""
    monkeypatch.setattr(training, "autocast", lambda _: torch.autocast("cpu", torch.bfloat16))
    outcome = train(replace(TINY, steps=5), tmp_path)
    assert {weight.dtype for weight in outcome.model.parameters()} == {torch.float32}
    wanted = straight[0].records[0]["loss"]
    assert outcome.records[0]["loss"] != wanted
    assert outcome.records[0]["loss"] == pytest.approx(wanted, rel=0.05)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch warns of what it leaves to Python, the CPU's scans
def test_the_network_is_compiled_if_asked_for(straight, tmp_path, monkeypatch):
    """Traced in pieces and run by torch itself, which is what can be tested without a compiler."""
    compiled = []

    def spy(function):
        compiled.append(function)
        return real(function, backend="eager")

    real = torch.compile
    monkeypatch.setattr(torch, "compile", spy)
    outcome = train(replace(TINY, compile=True), tmp_path)
    assert compiled == [outcome.model]
    found, wanted = weights(tmp_path), weights(straight[1])
    assert found.keys() == wanted.keys()
    for name, weight in found.items():
        torch.testing.assert_close(weight, wanted[name], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["task:sum_mod(2)", "task:sum_mod(3)"])
def test_sums_are_learnt(tmp_path, task):
    begun = time.monotonic()
    outcome = train(preset("quick", task, test_words=1000), tmp_path)
    assert outcome.end == "stop_at"
    assert outcome.records[-1]["word_accuracy"] == 1.0, json.dumps(outcome.records)
    assert outcome.step <= 400, time.monotonic() - begun


def test_layers_get_the_rates_that_they_ask_for(tmp_path):
    settings = replace(TINY, layer="s4d", connection="full-residual", block=2, heads=2, weight_decay=0.1, steps=4)
    run = training.TrainingRun(settings, tmp_path / "whole", True)
    run.update()
    found = {
        name: (group["lr"], group["weight_decay"])
        for group in run.trainer.optimiser.param_groups
        for name, weight in run.model.named_parameters()
        if any(weight is own for own in group["params"])
    }
    assert found.keys() == dict(run.model.named_parameters()).keys()
    assert found["layers.0.A_real"] == found["layers.1.inv_dt"] == (1e-3, 0.0)
    assert found["layers.0.C"] == found["readout.weight"] == (1e-2, 0.1)


def test_a_run_with_groups_goes_on_where_it_was_cut_short(tmp_path):
    settings = replace(TINY, layer="lru", connection="full-residual", options={"states": 4}, steps=6, evaluate_every=2)
    whole = train(settings, tmp_path / "whole")
    run = training.TrainingRun(settings, tmp_path / "cut", True)
    for _ in range(3):
        run.update()
    run.save()
    resumed = train(settings, tmp_path / "cut")
    assert resumed.step == whole.step == 6
    assert equal(resumed.model.state_dict(), whole.model.state_dict())


def test_a_run_starts_from_the_weights_of_a_model(tmp_path):
    machine, path = zoo.arbiter(2), tmp_path / "m.safetensors"
    save(compile_machine(machine, layout="dense"), path)
    settings = Settings("task:arbiter(2)", start=str(path), steps=1, test_length=20, batch=2, length=5)
    run = training.TrainingRun(settings, tmp_path / "run", resume=False)
    assert equal(run.model.state_dict(), load(path).state_dict())
    assert run.words.outputs == run.model.outputs
    assert Settings.from_json(settings.to_json()) == settings
    run.update()
    assert not equal(run.model.state_dict(), load(path).state_dict())
    resumed = train(replace(settings, steps=2), tmp_path / "run")
    assert resumed.step == 2
    training.TrainingRun(replace(settings, task="task:arbiter(2, policy=priority)"), tmp_path / "other", resume=False)
    letters = r"has the letters \(.*\), and task:flip_flop has \(.*\): read the machine over these, in this order"
    for task, message in (("arbiter(3)", "output 2 of the machine is none of"), ("flip_flop", letters)):
        with pytest.raises(UnsupportedFormat, match=message):
            training.TrainingRun(replace(settings, task=f"task:{task}"), tmp_path / "other", resume=False)
    save(compile_machine(machine, layout="index"), path)
    with pytest.raises(UnsupportedFormat, match="a table without weights to train: compile it with dense ones"):
        training.TrainingRun(settings, tmp_path / "index", resume=False)
