"""Folders of runs: checkpoints, records, kills and signals."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace

import pytest
import torch

from fsa2lrnn import files
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.nn import LRNN, checkpoint, load, save
from fsa2lrnn.nn.checkpoint import write_tensors
from fsa2lrnn.training import run_folder
from fsa2lrnn.training import train as training
from fsa2lrnn.training.run_folder import (
    CHECKPOINT,
    FORM,
    METRICS,
    MODEL,
    Evaluation,
    IntervalStatistics,
    RunState,
    prepare,
    read_records,
    write_records,
    write_state,
)
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import train
from fsa2lrnn.training.trainer import Stop

from .runs import TINY, equal, weights, without_speed

SETTINGS = Settings("task:parity", embedding_dim=2, block=1, heads=2, normalisation="clip", connection="chain")
LOOK = Evaluation(1, 0.5, 0.25, 0.125, 40, 8, 1.5, float("inf"), 1e-4, 100.0)
TENSORS = {"model.x": torch.arange(3.0), "optimiser.0.step": torch.tensor(1.0), "training": torch.zeros(5).byte()}
WANTED = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in TENSORS.items()}
WANTED |= {"optimiser.1.step": ((), torch.float32)}  # of a weight that nothing has moved yet


def prepared(folder, settings=SETTINGS, resume=True):
    return prepare(folder, settings, resume, WANTED)


@pytest.fixture
def folder(tmp_path):
    """A run with a checkpoint after its first of two records."""
    folder = tmp_path / "a" / "run"
    assert prepared(folder) is None
    model = LRNN(SETTINGS.network(("0", "1"), (False, True)))
    write_state(folder / CHECKPOINT, FORM, RunState(7, (LOOK,), IntervalStatistics(0.1, 0.2, 3)), TENSORS)
    save(model, folder / MODEL)
    write_records(folder, [asdict(LOOK), asdict(replace(LOOK, step=2))])
    return folder


def test_metrics_go_back_to_the_checkpoint(folder):
    assert [record["step"] for record in read_records(folder)] == [1, 2]
    checkpoint = prepared(folder)
    assert checkpoint is not None
    state, tensors = checkpoint
    assert state == RunState(7, (LOOK,), IntervalStatistics(0.1, 0.2, 3))
    assert all(torch.equal(tensors[name], tensor) for name, tensor in TENSORS.items())
    assert read_records(folder) == [asdict(LOOK)]
    assert load(folder / run_folder.MODEL).alphabet == ("0", "1")


def test_a_fresh_start_forgets_the_run(folder):
    assert prepared(folder, replace(SETTINGS, seed=3), resume=False) is None
    assert read_records(folder) == []
    assert sorted(path.name for path in folder.iterdir()) == ["metrics.jsonl", "settings.json"]


def test_a_folder_keeps_to_its_settings(folder):
    with pytest.raises(
        UnsupportedFormat, match=r"holds another run \(batch = 128 there and 64 here, seed = 0 there and 1"
    ):
        prepared(folder, replace(SETTINGS, seed=1, batch=64))
    assert prepared(folder, replace(SETTINGS, steps=7, stop_at=None)) is not None
    falling = replace(SETTINGS, schedule="cosine")
    prepared(folder, falling, resume=False)
    with pytest.raises(UnsupportedFormat, match="steps = 40000 there and 7 here"):
        prepared(folder, replace(falling, steps=7))


def test_damaged_checkpoints_records_and_settings_are_named(folder):
    path = folder / run_folder.CHECKPOINT
    for content in (b"", b"rubbish", path.read_bytes()[:-2]):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"checkpoint.bin cannot be resumed \(.*is damaged or .*afresh"):
            prepared(folder)
    with (folder / run_folder.METRICS).open("a") as file:
        file.write('{"step": 3}\n')
    with pytest.raises(UnsupportedFormat, match=r"metrics.jsonl, line 3.loss is missing"):
        read_records(folder)
    (folder / run_folder.SETTINGS).write_bytes(b"[" * 100_000)
    with pytest.raises(UnsupportedFormat, match=r"settings cannot be read .the text: nested deeper than 100"):
        prepared(folder)


def test_a_checkpoint_of_another_version_is_named(folder, monkeypatch):
    monkeypatch.setattr(run_folder, "FORM", FORM._replace(version=3))
    with pytest.raises(CheckpointError, match=r"is of format version '2', and this fsa2lrnn reads up to 3.*afresh"):
        prepared(folder)


STANDING = asdict(RunState(7, (LOOK,), IntervalStatistics()))


@pytest.mark.parametrize(("standing", "reason"), [
    ("{", "standing: line 1, column 2"),
    (json.dumps(STANDING | {"step": 7.0}), "standing.step = 7.0 must be a whole number"),
    (json.dumps(STANDING | {"records": [{}]}), r"standing.records\[0\].step is missing"),
    (json.dumps(STANDING | {"more": 1}), "standing.more is not known"),
])  # fmt: skip
def test_a_standing_of_other_types_is_named(folder, standing, reason):
    write_tensors(folder / run_folder.CHECKPOINT, FORM, TENSORS, {"standing": standing})
    with pytest.raises(CheckpointError, match=f"cannot be resumed .*{reason}.*start afresh"):
        prepared(folder)


@pytest.mark.parametrize(("changes", "reason"), [
    ({"model.x": torch.zeros(4)}, r"model.x has shape \(4,\) in place of \(3,\)"),
    ({"model.x": torch.zeros(3).double()}, "model.x is of torch.float64 in place of torch.float32"),
    ({"model.y": torch.zeros(3)}, "model.y is unknown"),
    ({"training": torch.zeros(6).byte()}, "training has shape"),
])  # fmt: skip
def test_tensors_of_another_network_are_named(folder, changes, reason):
    standing = {"standing": json.dumps(STANDING)}
    write_tensors(folder / run_folder.CHECKPOINT, FORM, TENSORS | changes, standing)
    with pytest.raises(CheckpointError, match=reason):
        prepared(folder)


KILLED = """
import os, signal, sys
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import train

def report(progress):
    if progress.step == 10:
        os.kill(os.getpid(), signal.SIGKILL)

train(Settings.from_json(sys.argv[1]), sys.argv[2], report=report)
"""


@pytest.mark.long
def test_a_killed_run_goes_on_to_the_last_bit(straight, tmp_path, read_records):
    killed = subprocess.run([sys.executable, "-c", KILLED, TINY.to_json(), tmp_path], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(read_records(tmp_path)) == 2
    (tmp_path / ".checkpoint.bin.12345678.fsa2lrnn-part").touch()  # left where it was killed while writing
    steps = []
    train(TINY, tmp_path, report=lambda progress: steps.append(progress.step) if progress.record else None)
    assert steps == [15, 20]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"settings.json", CHECKPOINT, MODEL, METRICS, files.LOCK}
    assert equal(weights(tmp_path), weights(straight[1]))
    assert without_speed(read_records(tmp_path)) == without_speed(straight[0].records)


def test_another_run_into_the_same_folder_is_refused(tmp_path):
    with files.alone(tmp_path, "run"), pytest.raises(UnsupportedFormat, match="another run is at work in"):
        train(TINY, tmp_path)


@pytest.mark.parametrize("name", [CHECKPOINT, MODEL, METRICS])
@pytest.mark.parametrize("step", [10, 20])
def test_a_full_disk_is_named_and_costs_no_step_that_was_saved(
    straight, tmp_path, monkeypatch, name, step, read_records
):
    def full(path, content, write=files.write_atomically):
        metrics = tmp_path / METRICS
        if path.name == name and metrics.exists() and len(metrics.read_text().splitlines()) == step // 5 - 1:
            raise OSError(28, "No space left on device", str(path))
        write(path, content)

    for module in (run_folder, checkpoint):
        monkeypatch.setattr(module, "write_atomically", full)
    with pytest.raises(OSError, match=f"No space left on device: .*{name}"):
        train(TINY, tmp_path)
    monkeypatch.undo()
    train(TINY, tmp_path)
    assert equal(weights(tmp_path), weights(straight[1]))
    assert without_speed(read_records(tmp_path)) == without_speed(straight[0].records)


def test_a_run_killed_between_its_two_files_goes_on_too(straight, tmp_path, read_records):
    train(replace(TINY, steps=10), tmp_path)
    model = (tmp_path / MODEL).read_bytes()
    train(replace(TINY, steps=15), tmp_path)
    (tmp_path / MODEL).write_bytes(model)
    with (tmp_path / METRICS).open("a") as file:
        file.write('{"step": 17')
    train(TINY, tmp_path)
    assert equal(weights(tmp_path), weights(straight[1]))
    assert without_speed(read_records(tmp_path)) == without_speed(straight[0].records)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_between_two_tests(straight, tmp_path, monkeypatch, number, read_records):
    monkeypatch.setattr(training, "REPORT_SECONDS", 0.0)

    def report(progress):
        if progress.step == 7:
            os.kill(os.getpid(), number)

    handler = signal.getsignal(number)
    outcome = train(TINY, tmp_path, report=report)
    assert (outcome.end, outcome.step) == ("interrupted", 7)
    assert signal.getsignal(number) is handler
    steps = []
    assert (train(TINY, tmp_path, report=lambda progress: steps.append(progress.step)).end, steps[0]) == ("steps", 8)
    assert equal(weights(tmp_path), weights(straight[1]))
    assert without_speed(read_records(tmp_path)) == without_speed(straight[0].records)


def test_signals_end_runs_and_threads_hear_none(tmp_path):
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    ends = []
    thread = threading.Thread(target=lambda: ends.append(train(replace(TINY, steps=1), tmp_path).end))
    thread.start()
    thread.join()
    assert ends == ["steps"]
