"""A sweep goes on where it ended, tells of what failed, and sums up over seeds."""

import json
import os
import signal
import subprocess
import sys

import pytest

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.files import alone
from fsa2lrnn.training import engines, sweep
from fsa2lrnn.training.engines import serial
from fsa2lrnn.training.grid import Sweep
from fsa2lrnn.training.run_folder import CHECKPOINT
from fsa2lrnn.training.seeds import run_seed
from fsa2lrnn.training.sweep import BAD_INPUT, FAILED, INTERRUPTED, RESULTS, SUMMARY, main, run_sweep, summary
from fsa2lrnn.training.train import Stop

FEW = {"steps": 4, "batch": 4, "length": 6, "test_length": 9, "test_words": 5, "evaluate_every": 2, "stop_at": None}
VALUES = {
    "preset": "quick",
    "tasks": ["task:parity"],
    "networks": {
        "tiny": {"embedding_dim": 4, "block": 2, "heads": 2},
        "lanes": {"embedding_dim": 4, "block": 1, "heads": 4, "normalisation": "clip"},
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
        return run_sweep(Sweep.from_dict(values), folder, engine, stop, **options)


@pytest.fixture
def begun(monkeypatch):
    """The folders of the runs that were begun."""
    names = []

    def counted(settings, folder, *rest):
        names.append(folder.name)
        return run_seed(settings, folder, *rest)

    monkeypatch.setattr(engines, "run_seed", counted)
    return names


def test_a_line_a_run_and_a_summary_of_cells(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "s.json").write_text(json.dumps(VALUES))
    out = tmp_path / "out"
    assert main([str(tmp_path / "s.json"), "--out", str(out), "--engine", "serial"]) == 0
    lines = records(out)
    assert [(x["network"], x["seed"], x["end"], x["failures"]) for x in lines] == [
        (network, seed, "steps", []) for network in ("tiny", "lanes") for seed in (0, 1)
    ]
    assert all(x["settings"]["seed"] == x["seed"] and (out / x["folder"]).is_dir() for x in lines)
    cells = json.loads((out / SUMMARY).read_text())
    assert [(cell["network"], cell["seeds"], cell["ends"]) for cell in cells] == [
        ("tiny", 2, {"steps": 2}),
        ("lanes", 2, {"steps": 2}),
    ]
    for cell, pair in zip(cells, (lines[:2], lines[2:]), strict=True):
        assert [line["length"] for line in cell["lengths"]] == [4, 9]
        for i, line in enumerate(cell["lengths"]):
            for name in ("last_position", "whole_word"):
                a, b = (record["last_checkpoint"][i][name]["accuracy"] for record in pair)
                assert line[name] == {"mean": pytest.approx((a + b) / 2), "min": min(a, b), "max": max(a, b)}
    printed = capsys.readouterr()
    assert "task:parity" in printed.out
    assert "4 runs, 0 of them finished before" in printed.err
    assert "[4/4, " in printed.err
    assert "task:parity, lanes, few, seed 1: steps at step 4, last output right " in printed.err


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


KILLED = """
import json, os, signal, sys
from pathlib import Path
from fsa2lrnn.training import engines, sweep, train

train._REPORT_SECONDS = 0.0
run_seed = engines.run_seed

def killed(settings, folder, plan, report):
    def tell(progress):
        if settings.seed == 1 and progress.step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    return run_seed(settings, folder, plan, tell)

engines.run_seed = killed
sweep.main([sys.argv[1], "--out", sys.argv[2], "--engine", "serial"])
"""


def test_a_killed_sweep_goes_on(tmp_path, begun):
    values = {**VALUES, "seeds": [0, 1, 2]}
    wanted = run(values, tmp_path / "straight")
    del begun[:]
    (tmp_path / "s.json").write_text(json.dumps(values))
    out = tmp_path / "out"
    arguments = [sys.executable, "-c", KILLED, tmp_path / "s.json", out]
    assert subprocess.run(arguments, check=False, capture_output=True).returncode == -signal.SIGKILL
    assert [record["seed"] for record in records(out)] == [0]
    assert (out / wanted[1]["folder"] / CHECKPOINT).exists()  # of step 2
    assert run(values, out) == wanted
    assert begun == [record["folder"] for record in wanted[1:]]


def test_ctrl_c_ends_the_sweep_and_the_rest_is_left(tmp_path, begun, monkeypatch):
    values = {**VALUES, "settings": {"long": {**VALUES["settings"]["few"], "steps": 1_000_000}}}
    (tmp_path / "s.json").write_text(json.dumps(values))

    def interrupted(settings, folder, plan, _):
        begun.append(folder.name)
        return run_seed(settings, folder, plan, lambda _: os.kill(os.getpid(), signal.SIGINT))

    monkeypatch.setattr(engines, "run_seed", interrupted)
    out = tmp_path / "out"
    assert main([str(tmp_path / "s.json"), "--out", str(out), "--engine", "serial"]) == INTERRUPTED
    assert len(begun) == 1
    assert not (out / RESULTS).exists()
    assert [cell["ends"] for cell in json.loads((out / SUMMARY).read_text())] == [{"interrupted": 2}] * 2


def test_a_run_that_fails_is_tried_again_and_then_left(tmp_path, begun, capsys):
    (tmp_path / "s.json").write_text(json.dumps({**VALUES, "tasks": [UNLEARNABLE, "task:parity"], "seeds": [0]}))
    arguments = [str(tmp_path / "s.json"), "--out", str(tmp_path / "out"), "--engine", "serial", "--retries", "2"]
    assert main(arguments) == FAILED
    assert len(begun) == 2 * 3 + 2
    by_task = {
        task: [x for x in records(tmp_path / "out") if x["task"] == task] for task in (UNLEARNABLE, "task:parity")
    }
    assert [x["end"] for x in by_task["task:parity"]] == ["steps"] * 2
    for record in by_task[UNLEARNABLE]:
        assert record["end"] == "failed"
        assert len(record["failures"]) == 3
        assert all("Traceback" in text and "there is nothing to learn" in text for text in record["failures"])
    cells = json.loads((tmp_path / "out" / SUMMARY).read_text())
    assert [cell["ends"] for cell in cells] == [{"failed": 1}] * 2 + [{"steps": 1}] * 2
    assert "seed 0: failed, fsa2lrnn.errors.UnsupportedFormat: " in capsys.readouterr().err
    del begun[:]
    assert main([*arguments[:-1], "0"]) == FAILED
    assert len(begun) == 2  # those that failed, once more


def test_a_run_that_recovers_counts_as_any_other(tmp_path, monkeypatch):
    calls = []

    def unlucky(*given):
        calls.append(given)
        if len(calls) == 1:
            raise OSError("the disk was away")
        return run_seed(*given)

    monkeypatch.setattr(engines, "run_seed", unlucky)
    found = run({**VALUES, "seeds": [0]}, tmp_path)
    assert [record["end"] for record in found] == ["steps"] * 2
    assert [len(record["failures"]) for record in found] == [1, 0]
    assert len(calls) == 3


def test_a_run_that_diverges_is_a_result(tmp_path, begun):
    values = {**VALUES, "settings": {"wild": {**VALUES["settings"]["few"], "learning_rate": 1e30}}, "seeds": [0]}
    found = run(values, tmp_path)
    assert [record["end"] for record in found] == ["diverged"] * 2
    assert all("training diverged at step" in record["error"] for record in found)
    assert len(begun) == 2
    (cell, _) = summary(Sweep.from_dict(values), found)
    assert (cell["seeds"], cell["ends"], cell["lengths"]) == (0, {"diverged": 1}, [])
    assert sweep.table([cell]).row_count == 1


def test_results_that_are_damaged_are_named(tmp_path):
    whole = {"folder": "a", "judged": {"lengths": [40], "words": 3, "letters": 9}, "seed": 0, "end": "failed"}
    (tmp_path / RESULTS).write_text(json.dumps(whole) + '\n{"folder"')
    with pytest.raises(CheckpointError, match=r"results.jsonl, line 2 is no result of a run \(.* truncated"):
        run(VALUES, tmp_path)
    (tmp_path / RESULTS).write_text(json.dumps(whole | {"judged": {}}))
    with pytest.raises(CheckpointError, match=r"line 1 is no result of a run \(the result.judged.lengths is missing"):
        run(VALUES, tmp_path)


def test_two_sweeps_do_not_share_a_folder(tmp_path, capsys):
    rest = ["--tasks", "task:parity", "--out", str(tmp_path), "--engine", "serial"]
    with alone(tmp_path, "sweep"):
        assert main(rest) == BAD_INPUT
    message = capsys.readouterr().err.replace("\n", " ")
    assert f"another sweep is at work in {tmp_path}: wait for it, or give another folder" in message


def test_options_take_the_place_of_entries(tmp_path, monkeypatch):
    (tmp_path / "s.toml").write_text('tasks = ["task:parity"]\nseeds = [0, 1]\n[settings.slow]\nlearning_rate = 1e-5\n')
    seen = []
    monkeypatch.setattr(sweep, "run_sweep", lambda given, *_: seen.append(given) or [None] * len(given.trials))
    rest = ["--out", str(tmp_path / "out"), "--engine", "serial"]
    fast = ["--set", "fast:learning_rate=0.1,optimiser=adamw"]
    main([str(tmp_path / "s.toml"), "--seeds", "7", "--networks", "diagonal", *fast, *rest])
    main(["--tasks", "task:parity", "task:sum_mod(2)", "--lengths", "5", "--words", "9", *rest])
    assert [(t.setting, t.settings.seed, t.settings.block) for t in seen[0].trials] == [("slow", 7, 1), ("fast", 7, 1)]
    assert seen[0].trials[1].settings.optimiser == "adamw"
    assert [trial.task for trial in seen[1].trials] == ["task:parity", "task:sum_mod(2)"]
    assert (seen[1].plan.lengths, seen[1].plan.n_words) == ((5,), 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tasks", "task:nothing"], "task 'task:nothing': task 'nothing' is not known"),
        ([], "tasks are missing: give at least one"),
        (["nowhere.json"], "No such file or directory: 'nowhere.json'"),
        (["--tasks", "task:parity", "--retries", "-1"], "--retries -1: give 0 or more"),
        (["--tasks", "task:parity", "--address", "x:1", "--cpus", "2"], "--cpus 2 is for this machine, and x:1 a cl"),
        (["--tasks", "task:parity", "--set", "fast"], "--set 'fast': write NAME:KEY=VALUE, fast:learning_rate=0.001"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_runs(tmp_path, capsys, options, message):
    assert main([*options, "--out", str(tmp_path / "out"), "--engine", "serial"]) == BAD_INPUT
    assert f"error: {message}" in capsys.readouterr().err.replace("the sweep does not fit: ", "").replace(
        "the sweep can't be read: ", ""
    ).replace("[Errno 2] ", "")
    assert not (tmp_path / "out").exists()
