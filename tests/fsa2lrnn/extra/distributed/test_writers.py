"""Records go where they are asked to, one run there for one run here, and a missing package is named beforehand."""

import os
import subprocess
import sys
import types
from dataclasses import asdict, replace

import pytest

from fsa2lrnn.errors import MissingPackage, UnsupportedFormat
from fsa2lrnn.extra.distributed.writers import WRITERS, check_writers, record_writers
from fsa2lrnn.optional import is_installed
from fsa2lrnn.training.train import Diverged, train
from tests.fsa2lrnn.training.runs import TINY

RECORD = dict.fromkeys(("accuracy", "word_accuracy", "gradient_norm", "weight_norm", "steps_per_second"), 0.5)


class Runs:
    """What of `wandb` training calls, noted down."""

    def __init__(self):
        self.begun, self.logged, self.ended = [], [], []

    def init(self, **given):
        self.begun.append(given)
        log = lambda values, step: self.logged.append((given["id"], step, values))  # noqa: E731
        return types.SimpleNamespace(log=log, finish=lambda exit_code: self.ended.append((given["id"], exit_code)))


@pytest.fixture
def wandb(monkeypatch):
    runs = Runs()
    module = types.ModuleType("wandb")
    module.init = runs.init
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return runs


def test_a_run_is_logged_with_its_settings_and_steps(wandb, tmp_path):
    settings = replace(TINY, steps=5)
    outcome = train(settings, tmp_path / "run", write_to=("wandb",))
    (begun,), (logged,) = wandb.begun, wandb.logged
    assert (begun["project"], begun["name"]) == ("fsa2lrnn", f"{settings.task}, seed {settings.seed}")
    assert (begun["config"], begun["dir"]) == (asdict(settings), str(tmp_path / "run"))
    identity, step, values = logged
    record = outcome.records[0]
    assert (identity, step) == (begun["id"], record["step"])
    assert values == {name: record[name] for name in ("loss", *RECORD)}
    assert wandb.ended == [(begun["id"], 0)]


def test_a_run_that_goes_on_goes_on_there_too_unless_it_is_fresh(wandb, tmp_path):
    for steps in (5, 10):
        train(replace(TINY, steps=steps), tmp_path, write_to=("wandb",))
    train(replace(TINY, steps=5), tmp_path, resume=False, write_to=("wandb",))
    first, again, fresh = [begun["id"] for begun in wandb.begun]
    assert first == again != fresh
    assert [begun["resume"] for begun in wandb.begun] == ["allow"] * 3
    assert {begun["reinit"] for begun in wandb.begun} == {"create_new"}


def test_a_run_that_fails_is_ended_as_failed(wandb, tmp_path):
    def diverge():
        with record_writers(("wandb",), TINY, tmp_path, True) as write:
            write(RECORD | {"step": 3, "loss": 2.0})
            raise Diverged("the loss is no longer a number")

    with pytest.raises(Diverged):
        diverge()
    assert [(step, values["loss"]) for _, step, values in wandb.logged] == [(3, 2.0)]
    assert [code for _, code in wandb.ended] == [1]


def test_the_project_is_the_users(wandb, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    with record_writers(("wandb",), TINY, tmp_path, True):
        pass
    assert wandb.begun[0]["project"] == "mine"


def test_what_is_missing_is_said_before_training(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    wanted = r'wandb=True needs wandb, which is not installed: pip install "fsa2lrnn\[wandb\]"'
    with pytest.raises(MissingPackage, match=wanted):
        train(TINY, tmp_path / "run", write_to=("wandb",))
    assert not (tmp_path / "run").exists()
    check_writers(())
    assert WRITERS == ("tensorboard", "wandb")


REAL = """
import sys
from pathlib import Path
from tests.fsa2lrnn.training.runs import TINY
from fsa2lrnn.extra.distributed.writers import record_writers

opened = [record_writers(("wandb",), TINY, Path(name), True) for name in sys.argv[1:]]
with opened[0] as one, opened[1] as two:
    for step in (1, 2):
        for write in (one, two):
            write({"step": step, "loss": 0.5, "accuracy": 0.5, "word_accuracy": 0.5, "gradient_norm": 0.5,
                   "weight_norm": 0.5, "steps_per_second": 0.5})
"""


@pytest.mark.slow
def test_the_package_itself_keeps_two_runs_apart_offline(tmp_path):
    if not is_installed("wandb"):
        pytest.skip("wandb is not installed")
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    subprocess.run([sys.executable, "-c", REAL, *map(str, folders)], check=True, env=environment, timeout=300)
    for folder in folders:
        identity = (folder / "wandb-id.txt").read_text().strip()
        (kept,) = (folder / "wandb").glob(f"offline-run-*-{identity}/run-{identity}.wandb")
        assert b"word_accuracy" in kept.read_bytes()


@pytest.mark.parametrize("names", [("csv",), "wandb", ("tensorboard", "csv")])
def test_a_writer_that_there_is_not_is_refused_before_anything_is_written(names, tmp_path):
    with pytest.raises(UnsupportedFormat, match="give a list with any of tensorboard, wandb"):
        train(TINY, tmp_path / "run", write_to=names)
    assert not (tmp_path / "run").exists()
