"""Sweeps and their results."""

import json
import os
import re
import signal
import subprocess
import sys
import types
from dataclasses import asdict, replace

import pytest

from experiments.studies.keep_models import MODELS
from fsa2lrnn.errors import CheckpointError, MissingPackage, UnsupportedFormat
from fsa2lrnn.files import alone
from fsa2lrnn.optional import is_installed
from fsa2lrnn.training import engines, sweep
from fsa2lrnn.training.engines import serial
from fsa2lrnn.training.grid import Sweep
from fsa2lrnn.training.run_folder import WRITERS, check_writers, record_writers
from fsa2lrnn.training.seeds import run_seed
from fsa2lrnn.training.sweep import (
    RESULTS,
    SUMMARY,
    KeptModelOrigin,
    RunResult,
    SweepLine,
    parse_result,
    read_result,
    run_sweep,
    summary,
    sweep_in,
)
from fsa2lrnn.training.train import Diverged, train
from fsa2lrnn.training.trainer import Stop
from tests.fsa2lrnn.training.runs import TINY

FEW = {"steps": 4, "batch": 4, "length": 6, "test_length": 9, "test_words": 5, "evaluate_every": 2, "stop_at": None}
VALUES = {
    "preset": "quick",
    "tasks": ["task:parity"],
    "networks": {
        "tiny": {"embedding_dim": 4, "block": 2, "heads": 2},
        "channels": {"embedding_dim": 4, "block": 1, "heads": 4, "normalisation": "clip"},
    },
    "settings": {"few": {k: v for k, v in FEW.items() if v is not None}},
    "seeds": [0, 1],
    "lengths": [4, 9],
    "words": 20,
}
UNLEARNABLE = "regex:(a|b)*"  # has one output, which training finds out


def records(folder):
    return [json.loads(line) for line in (folder / RESULTS).read_text().splitlines()]


def run(values, folder, **options):
    folder.mkdir(exist_ok=True)
    stop = Stop()
    with serial(stop) as engine:
        return run_sweep(Sweep.from_dict(values).trials, folder, engine, stop, **options)


@pytest.fixture
def begun(monkeypatch):
    """The folders of the runs that were begun."""
    names = []

    def counted(settings, folder, *rest):
        names.append(folder.name)
        return run_seed(settings, folder, *rest)

    monkeypatch.setattr(engines, "run_seed", counted)
    return names


def test_a_line_a_run_and_a_summary_of_cells(tmp_path):
    out, said = tmp_path / "out", []
    swept = sweep_in(out, Sweep.from_dict(VALUES).trials, "serial", report=said.append)
    assert (swept.failed, swept.interrupted) == (False, False)
    lines = records(out)
    assert [(x["network"], x["seed"], x["end"], x["failures"]) for x in lines] == [
        (network, seed, "steps", []) for network in ("tiny", "channels") for seed in (0, 1)
    ]
    assert all(x["settings"]["seed"] == x["seed"] and (out / x["folder"]).is_dir() for x in lines)
    cells = json.loads((out / SUMMARY).read_text())
    assert cells == swept.cells
    assert [(cell["network"], cell["seeds"], cell["ends"]) for cell in cells] == [
        ("tiny", 2, {"steps": 2}),
        ("channels", 2, {"steps": 2}),
    ]
    for cell, pair in zip(cells, (lines[:2], lines[2:]), strict=True):
        assert [line["length"] for line in cell["lengths"]] == [4, 9]
        for i, line in enumerate(cell["lengths"]):
            for name in ("last_position", "whole_word"):
                a, b = (record["last_checkpoint"][i][name]["accuracy"] for record in pair)
                assert line[name] == {"mean": pytest.approx((a + b) / 2), "min": min(a, b), "max": max(a, b)}
    assert said[0] == "4 runs, 0 of them finished before"
    assert said[-1].startswith("[4/4, ")
    assert "task:parity, channels, few, seed 1: steps at step 4, last output right " in said[-1]


def test_finished_runs_are_not_done_again(tmp_path, begun):
    first = run(VALUES, tmp_path)
    del begun[:]
    more = run({**VALUES, "seeds": [0, 1, 2]}, tmp_path)
    assert len(begun) == 2
    assert all("-2-" in name for name in begun)
    assert [more[i] for i in (0, 1, 3, 4)] == first
    del begun[:]
    judged = run({**VALUES, "lengths": [5]}, tmp_path)
    assert len(begun) == 4
    assert [len(record["last_checkpoint"]) for record in judged] == [1] * 4


def test_ctrl_c_ends_the_sweep_and_the_rest_is_left(tmp_path, begun, monkeypatch):
    values = {**VALUES, "settings": {"long": {**VALUES["settings"]["few"], "steps": 1_000_000}}}

    def interrupted(settings, folder, plan, _):
        begun.append(folder.name)
        return run_seed(settings, folder, plan, lambda _: os.kill(os.getpid(), signal.SIGINT))

    monkeypatch.setattr(engines, "run_seed", interrupted)
    out = tmp_path / "out"
    assert sweep_in(out, Sweep.from_dict(values).trials, "serial").interrupted
    assert len(begun) == 1
    assert not (out / RESULTS).exists()
    assert [cell["ends"] for cell in json.loads((out / SUMMARY).read_text())] == [{"interrupted": 2}] * 2


def test_a_run_that_fails_is_tried_again_and_then_left(tmp_path, begun):
    asked, said = Sweep.from_dict({**VALUES, "tasks": [UNLEARNABLE, "task:parity"], "seeds": [0]}), []
    assert sweep_in(tmp_path, asked.trials, "serial", retries=2, report=said.append).failed
    assert len(begun) == 2 * 3 + 2
    by_task = {task: [x for x in records(tmp_path) if x["task"] == task] for task in (UNLEARNABLE, "task:parity")}
    assert [x["end"] for x in by_task["task:parity"]] == ["steps"] * 2
    for record in by_task[UNLEARNABLE]:
        assert (record["end"], len(record["failures"])) == ("failed", 3)
        assert all("Traceback" in text and "there is nothing to learn" in text for text in record["failures"])
    cells = json.loads((tmp_path / SUMMARY).read_text())
    assert [cell["ends"] for cell in cells] == [{"failed": 1}] * 2 + [{"steps": 1}] * 2
    assert any("seed 0: failed, fsa2lrnn.errors.UnsupportedFormat: " in line for line in said)
    del begun[:]
    assert sweep_in(tmp_path, asked.trials, "serial", retries=0).failed
    assert len(begun) == 2  # those that failed, once more


def test_a_run_that_diverges_is_a_result(tmp_path, begun):
    values = {**VALUES, "settings": {"wild": {**VALUES["settings"]["few"], "learning_rate": 1e30}}, "seeds": [0]}
    found = run(values, tmp_path)
    assert [record["end"] for record in found] == ["diverged"] * 2
    assert all("training diverged at step" in record["error"] for record in found)
    assert len(begun) == 2
    (cell, _) = summary(Sweep.from_dict(values).trials, found)
    assert (cell["seeds"], cell["ends"], cell["lengths"]) == (0, {"diverged": 1}, [])
    assert sweep.table([cell]).row_count == 1


def test_damaged_results_shared_folders_and_missing_files_are_named(tmp_path):
    whole = {"folder": "a", "judged": {"lengths": [40], "words": 3, "letters": 9}, "seed": 0, "end": "failed"}
    (tmp_path / RESULTS).write_text(json.dumps(whole) + '\n{"folder"')
    with pytest.raises(CheckpointError, match=r"results.jsonl, line 2 is not a result of a run \(.* truncated"):
        run(VALUES, tmp_path)
    (tmp_path / RESULTS).write_text(json.dumps(whole | {"judged": {}}))
    with pytest.raises(CheckpointError, match=r"line 1 is not a result of a run \(the result.judged.lengths is"):
        run(VALUES, tmp_path)
    message = f"another sweep is at work in {re.escape(str(tmp_path))}: wait for it, or give another folder"
    with alone(tmp_path, "sweep"), pytest.raises(UnsupportedFormat, match=message):
        sweep_in(tmp_path, Sweep.from_dict(VALUES).trials, "serial")
    (tmp_path / "result.json").write_bytes(b"{")
    with pytest.raises(CheckpointError, match=r"result.json is not a result of a run .*: line 1, column 2"):
        read_result(tmp_path / "result.json")


SHARE = {"accuracy": 0.5, "interval": [0.25, 0.75]}
LENGTH = {"length": 40, "words": 4, "whole": 2, "last": 2, "whole_word": SHARE, "last_position": SHARE}
ONE_RESULT = {"seed": 3, "end": "steps", "step": 20, "last_checkpoint": [LENGTH]}
ONE_RESULT |= {"paper_protocol": {"accuracy": None, "looks": 0}}


@pytest.mark.parametrize(
    "path", sorted(MODELS.rglob("*.json"))[::5], ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_kept_models_say_where_they_come_from(path):
    assert read_result(path, KeptModelOrigin)["task"].startswith("task:")


@pytest.mark.parametrize(("kind", "value", "reason"), [
    (RunResult, [], r"r is not a result of a run .the result = \[\] must be an object.: remove it"),
    (RunResult, ONE_RESULT | {"last_checkpoint": [{}]}, r"last_checkpoint\[0\].length is missing"),
    (SweepLine, ONE_RESULT, "the result.folder is missing; the result.judged is missing"),
    (KeptModelOrigin, ONE_RESULT, "the result.task is missing"),
])  # fmt: skip
def test_what_is_no_result_is_named(kind, value, reason):
    with pytest.raises(CheckpointError, match=reason):
        parse_result(kind, json.dumps(value), "r")


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
    wanted = r'--wandb needs wandb, which is not installed: pip install "fsa2lrnn\[wandb\]"'
    with pytest.raises(MissingPackage, match=wanted):
        train(TINY, tmp_path / "run", write_to=("wandb",))
    assert not (tmp_path / "run").exists()
    check_writers(())
    assert WRITERS == ("tensorboard", "wandb")


REAL = """
import sys
from pathlib import Path
from tests.fsa2lrnn.training.runs import TINY
from fsa2lrnn.training.run_folder import record_writers

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
