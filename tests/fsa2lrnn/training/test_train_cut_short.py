"""Training goes on to the last bit where it was killed, told to stop, or out of disk."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from fsa2lrnn import files
from fsa2lrnn.lrnn import tensor_file
from fsa2lrnn.training import run_folder
from fsa2lrnn.training import train as training
from fsa2lrnn.training.run_folder import CHECKPOINT, METRICS, MODEL
from fsa2lrnn.training.train import Stop, train

from .runs import TINY, equal, weights, without_speed

KILLED = """
import os, signal, sys
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import train

def report(progress):
    if progress.step == 10:
        os.kill(os.getpid(), signal.SIGKILL)

train(Settings.from_json(sys.argv[1]), sys.argv[2], report=report)
"""


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


BESIDE = """
import sys
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import train

train(Settings.from_json(sys.argv[1]), sys.argv[2])
"""


def test_another_run_into_the_same_folder_is_refused(straight, tmp_path, read_records):
    ended = []

    def report(progress):
        if progress.step == 10:
            command = [sys.executable, "-c", BESIDE, TINY.to_json(), tmp_path]
            ended.append(subprocess.run(command, check=False, capture_output=True, text=True))

    train(TINY, tmp_path, report=report)
    (beside,) = ended
    assert beside.returncode == 1
    assert f"UnsupportedFormat: another run is at work in {tmp_path}: wait for it" in beside.stderr
    assert [record["step"] for record in read_records(tmp_path)] == [5, 10, 15, 20]
    assert equal(weights(tmp_path), weights(straight[1]))


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

    for module in (run_folder, tensor_file):
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
    monkeypatch.setattr(training, "_REPORT_SECONDS", 0.0)

    def report(progress):
        if progress.step == 7:
            os.kill(os.getpid(), number)

    handler = signal.getsignal(number)
    outcome = train(TINY, tmp_path, report=report)
    assert (outcome.end, outcome.step) == ("interrupted", 7)
    assert signal.getsignal(number) is handler
    steps = []
    assert train(TINY, tmp_path, report=lambda progress: steps.append(progress.step)).end == "steps"
    assert steps[0] == 8
    assert equal(weights(tmp_path), weights(straight[1]))
    assert without_speed(read_records(tmp_path)) == without_speed(straight[0].records)


def test_a_second_signal_ends_at_once():
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_training_in_a_thread_hears_no_signals(tmp_path):
    ends = []
    thread = threading.Thread(target=lambda: ends.append(train(replace(TINY, steps=1), tmp_path).end))
    thread.start()
    thread.join()
    assert ends == ["steps"]
