"""Engines and grids of sweeps."""

import gc
import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fsa2lrnn.errors import MissingPackage, UnsupportedFormat, counted
from fsa2lrnn.nn import load
from fsa2lrnn.training import engines, grid
from fsa2lrnn.training.engines import Job, attempt, on_ray, processes, serial, stacked
from fsa2lrnn.training.grid import NETWORKS, Sweep, read_sweep
from fsa2lrnn.training.run_folder import SETTINGS
from fsa2lrnn.training.seeds import RunPlan
from fsa2lrnn.training.settings import Settings, preset
from fsa2lrnn.training.trainer import Stop

TINY = Settings(
    "task:sum_mod(2)", embedding_dim=4, block=2, heads=2, batch=4, length=6, test_length=9, test_words=5, steps=4,
    evaluate_every=2, stop_at=None,
)  # fmt: skip
PLAN = RunPlan(lengths=(3, 5), n_words=20)
NOTHING_TO_LEARN = replace(TINY, task="regex:(a|b)*")


def jobs(folder):
    return [
        Job(settings, folder / str(i), PLAN)
        for i, settings in enumerate([TINY, NOTHING_TO_LEARN, replace(TINY, seed=3)])
    ]


def without_places(answer):
    return {name: x for name, x in answer.result.items() if name not in ("folder", "model")}


def ask_once_begun(stop, folder):
    while not (folder / SETTINGS).exists():
        time.sleep(0.01)
    stop.asked = True


@pytest.mark.slow
def test_ray_gives_what_one_process_gives(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    with serial(Stop()) as run:
        wanted = {int(job.folder.name): answer for job, answer in run(jobs(tmp_path / "serial"))}
    monkeypatch.chdir(tmp_path)
    stop = Stop()
    with on_ray(stop, cpus=1) as run:
        found = {int(job.folder.name): answer for job, answer in run(jobs(tmp_path / "ray"))}
        with pytest.raises(
            UnsupportedFormat, match="a run asks for 2 CPUs of 1 here: lower threads, or give a cluster"
        ):
            list(run([Job(replace(TINY, threads=2), tmp_path / "wide", PLAN)]))
        endless = [Job(replace(TINY, steps=10**9, seed=i), tmp_path / f"endless-{i}", PLAN) for i in (0, 1)]
        calls, cancel = [], ray.cancel
        monkeypatch.setattr(engines, "_PATIENCE_SECONDS", 0.1)
        monkeypatch.setattr(ray, "cancel", lambda x: calls.append(x) or (len(calls) > 2 and cancel(x)))  # two get lost
        threading.Thread(target=ask_once_begun, args=(stop, endless[0].folder)).start()
        assert [answer.result["end"] for _, answer in run(endless)] == ["interrupted"] * 2
        assert len(calls) > 2
        assert {answer.result["end"] for _, answer in run(endless)} == {"interrupted"}  # and none is begun
        assert not endless[1].folder.exists()
    assert found.keys() == wanted.keys() == {0, 1, 2}
    for i in (0, 2):
        assert without_places(found[i]) == without_places(wanted[i])
        a, b = (load(tmp_path / engine / str(i) / "model.safetensors").state_dict() for engine in ("serial", "ray"))
        assert all(torch.equal(a[name], b[name]) for name in a)
    assert wanted[0] != wanted[2]
    for answer in (found[1], wanted[1]):
        assert answer.result is None
        assert answer.traceback.startswith("Traceback")
        assert "in train" in answer.traceback
        assert "that there is nothing to learn" in answer.traceback
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    gc.collect()


def test_stops_and_missing_gpus_and_clusters_end_at_once(tmp_path):
    stop, answers = Stop(), []
    with serial(stop) as run:
        for _, answer in run(jobs(tmp_path)):
            answers.append(answer.result and answer.result["end"])
            stop.asked = True
    assert answers == ["steps", "interrupted", "interrupted"]
    job = Job(replace(TINY, device="cuda"), Path(), PLAN)
    with pytest.raises(UnsupportedFormat, match='a run asks for 1 GPUs of 0 here: set device to "cpu", or give'):
        engines._check_resources({"CPU": 8.0}, [job])
    engines._check_resources({"CPU": 1.0, "GPU": 1.0}, [job])
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        engines._check_reachable(address)
    with pytest.raises(ConnectionError, match=f"nothing answers at {address} .*: start a cluster there"):
        engines._check_reachable(address)
    engines._check_reachable("auto")
    for wrong in ("head", "head:", ":6379", "ray://head:10001/x"):
        with pytest.raises(UnsupportedFormat, match=r"give HOST:PORT of a cluster's head, or \"auto\""):
            engines._check_reachable(wrong)


def test_any_error_has_its_traceback(tmp_path, monkeypatch):
    def broken(*_):
        raise KeyError("no luck")

    monkeypatch.setattr(engines, "run_seed", broken)
    answer = attempt(Job(TINY, tmp_path / "run", PLAN))
    assert "KeyError: 'no luck'" in answer.traceback
    assert "in broken" in answer.traceback


@pytest.mark.slow
def test_a_cluster_by_address(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    token = "0123456789abcdef" * 4
    for name, value in {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, "RAY_USAGE_STATS_ENABLED": "0"}.items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = f"127.0.0.1:{port}"
    head = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", f"--port={port}", "--num-cpus=2"]
    few = {"tasks": ["task:parity"], "preset": "quick", "settings": {"few": {"steps": 5}}, "words": 9, "lengths": [9]}
    (file := tmp_path / "few.json").write_text(json.dumps(few))
    sweep = [sys.executable, "-m", "fsa2lrnn", "sweep", file, "--address", address, "--output", tmp_path / "out"]
    with subprocess.Popen([*head, "--include-dashboard=false"], stdout=subprocess.DEVNULL) as cluster:
        try:
            wait_for(address)
            for seeds, before, runs in ("0", 0, 1), ("0,1,2", 1, 3):
                done = subprocess.run([*sweep, "--seeds", seeds], check=True, capture_output=True, text=True)
                assert f"{counted(runs, 'run')}, {before} of them finished before" in done.stderr
                assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == runs
            stranger = {**os.environ, "RAY_AUTH_TOKEN": token[::-1]}
            done = subprocess.run(sweep, env=stranger, check=False, capture_output=True, text=True)
            assert done.returncode == 2
            assert "if the cluster asks for a token" in done.stderr
        finally:
            cluster.terminate()


def wait_for(address):
    for _ in range(60):
        try:
            return engines._check_reachable(address)
        except ConnectionError:
            time.sleep(1)
    raise TimeoutError(address)


def test_ray_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    message = r'a sweep on Ray needs ray, .*: pip install "fsa2lrnn\[sweep\]", or take --engine serial'
    with pytest.raises(MissingPackage, match=message), on_ray(Stop()):
        pass


@pytest.mark.slow  # three processes import torch
def test_processes_give_what_one_process_gives(tmp_path):
    with serial(Stop()) as run:
        wanted = {int(job.folder.name): answer for job, answer in run(jobs(tmp_path / "serial"))}
    with processes(Stop()) as run:
        found = {int(job.folder.name): answer for job, answer in run(jobs(tmp_path / "processes"))}
    assert found.keys() == wanted.keys()
    assert [without_places(found[i]) for i in (0, 2)] == [without_places(wanted[i]) for i in (0, 2)]
    assert found[1].result is None
    assert "there is nothing to learn" in (found[1].traceback or "")


def test_runs_that_differ_in_their_seed_are_stacked_and_all_that_have_graphs(tmp_path, monkeypatch):
    groups = []

    def stack(runs, plan, _report):
        groups.append([settings.seed for settings, _ in runs])
        return [{"end": "steps", "seed": settings.seed, "plan": plan} for settings, _ in runs]

    monkeypatch.setattr(engines, "run_stacked", stack)
    replayed = replace(TINY, device="cuda", cuda_graph=True)
    wide = replace(TINY, embedding_dim=8)
    given = [TINY, wide.with_seed(4), TINY.with_seed(1), replayed.with_seed(5), replace(replayed, heads=1, seed=6)]
    wanted = [Job(settings, tmp_path / str(i), PLAN) for i, settings in enumerate(given)]
    with stacked(Stop()) as run:
        found = dict(run(wanted))
    assert groups == [[0, 1], [4], [5, 6]]
    assert all(found[job].result["seed"] == job.settings.seed for job in wanted)


def test_a_stack_that_fails_says_so_of_each_and_an_interrupted_one_is_the_last(tmp_path, monkeypatch):
    other = replace(TINY, embedding_dim=8)
    with stacked(stop := Stop()) as run:
        given = [Job(settings, tmp_path / str(i), PLAN) for i, settings in enumerate([TINY, other])]
        monkeypatch.setattr(engines, "run_stacked", lambda *_: [{"end": "interrupted"}])
        assert [answer.result["end"] for _, answer in run(given)] == ["interrupted", "interrupted"]
        assert stop.asked
    with stacked(Stop()) as run:
        monkeypatch.setattr(engines, "run_stacked", lambda *_: 1 / 0)
        assert all("ZeroDivisionError" in answer.traceback for _, answer in run(given))


VALUES = {
    "tasks": ["task:parity", "task:sum_mod(3)"],
    "networks": ["block-8", "diagonal"],
    "settings": {"slow": {"learning_rate": 1e-4}, "fast": {"learning_rate": 1e-2}},
    "seeds": [0, 5],
    "preset": "quick",
    "lengths": [7, 30],
    "words": 11,
}


def test_folders_and_networks_of_sweeps():
    sweep = Sweep.from_dict(VALUES)
    cells = [(t.task, t.network, t.setting, t.settings.seed) for t in sweep.trials]
    assert len(cells) == len(set(cells)) == 16
    assert cells[:2] == [("task:parity", "block-8", "slow", 0), ("task:parity", "block-8", "slow", 5)]
    last = sweep.trials[-1]
    wanted = preset("quick", "task:sum_mod(3)", learning_rate=1e-2, seed=5, **NETWORKS["diagonal"])
    assert last.settings == wanted
    assert last.plan == RunPlan(lengths=(7, 30), n_words=11)
    assert last.judged == {"lengths": [7, 30], "words": 11, "letters": RunPlan.letters}
    small, large = Sweep.from_dict(VALUES), Sweep.from_dict({**VALUES, "seeds": [5, 6, 0], "tasks": ["task:parity"]})
    folders = [trial.folder for trial in small.trials]
    assert len(set(folders)) == 16
    assert all(set("/ :()") & set(folder) == set() for folder in folders)
    assert set(folders[:8]) < {trial.folder for trial in large.trials}
    other = Sweep.from_dict({**VALUES, "settings": {"slow": {"learning_rate": 1e-5}}})
    assert not {trial.folder for trial in other.trials} & set(folders)
    (trial,) = Sweep.from_dict({"tasks": ["task:parity"], "networks": {"small": {"block": 2, "heads": 3}}}).trials
    assert (trial.network, trial.settings.block, trial.settings.heads) == ("small", 2, 3)


def test_what_a_file_holds_is_checked_at_once():
    wrong = {"networks": ["block-8", "lstm"], "seeds": ["0"], "preset": 3, "words": True, "colour": "red"}
    with pytest.raises(UnsupportedFormat) as caught:
        Sweep.from_dict(wrong)
    for piece in (
        "the sweep.colour is not known: remove it",
        "the sweep.seeds[0] = '0' must be a whole number",
        "the sweep.preset = 3 must be text",
        "the sweep.words = True must be a whole number",
        "the sweep.tasks is missing",
    ):
        assert piece in str(caught.value)
    for networks in ("block-8", [["block-8"]], [{}], {"x": 1}):
        with pytest.raises(UnsupportedFormat, match=r"the sweep\.networks.* must be "):
            Sweep.from_dict({"tasks": ["task:parity"], "networks": networks})
    with pytest.raises(UnsupportedFormat, match="network 'lstm' is none of block-8, block-8-clip"):
        Sweep.from_dict({"tasks": ["task:parity"], "networks": ["block-8", "lstm"]})


@pytest.mark.parametrize(("changes", "message"), [
    ({"tasks": []}, "tasks is empty: give at least one"),
    ({"seeds": [1, 1]}, r"seeds = \[1, 1\]: each may occur once"),
    ({"settings": {"wide": {"heads": 2}}}, "setting 'wide' changes heads, which network 'block-8' decides: name ano"),
    ({"settings": {"lucky": {"seed": 7}}}, "'block-8' with 'lucky' changes seed: those are axes of their own"),
    ({"settings": {"x": {"batch": 0}}}, "with setting 'x': settings do not fit: batch = 0 must be a whole number"),
    ({"lengths": [0]}, "all must be at least 1"),
    ({"seeds": list(range(20_000))}, "160,000 runs: at most 10,000 are a sweep, split it"),
])  # fmt: skip
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(UnsupportedFormat, match=message):
        Sweep.from_dict({**VALUES, **changes})


def test_machines_too_large_together_are_refused(monkeypatch):
    monkeypatch.setattr(grid, "MAX_ENTRIES", 30)
    tasks = [f"task:length_mod({n})" for n in range(5, 15)]
    with pytest.raises(UnsupportedFormat, match="the machines of the tasks have more than 30 transitions: split"):
        Sweep.from_dict({**VALUES, "tasks": tasks, "seeds": [0], "settings": {"x": {}}, "networks": ["diagonal"]})


@pytest.mark.parametrize(("name", "text", "message"), [
    ("s.yaml", "", "s.yaml ends in .yaml: a sweep is a .json or a .toml file"),
    ("s.json", "{", r"s.json cannot be read \(.*: Expecting .*: give a JSON table"),
    ("s.toml", "x", r"s.toml cannot be read \(.*: give a TOML table"),
    ("s.json", "[1]", "s.json holds a list: give a table with tasks"),
    ("s.json", "[" * 100_000, r"s.json cannot be read \(the text: nested deeper than 100"),
    ("s.toml", "a = " + "[" * 5_000 + "]" * 5_000, r"s.toml cannot be read \(the text: nested deeper than 100"),
    ("s.toml", "a = " + "9" * 5_000, "s.toml cannot be read .*: correct the TOML"),
    ("s.toml", "# " + "-" * (1 << 20), "s.toml has 1,048,578 bytes, and at most 1,048,576 are a sweep: split it"),
    ("s.toml", '[networks.mine]\nlayer = "os:path"', "layer kind 'os:path' is not known: .* is made known first"),
    ("s.json", '{"settings": {"x": {"layer": ["block"]}}}', r"layer kind \['block'\] is not known"),
])  # fmt: skip
def test_files_that_are_no_sweep(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(UnsupportedFormat, match=message):
        read_sweep(tmp_path / name)
