"""Certificates found twice: which runs are due, what is kept, and that the committed ones came out alike."""

import hashlib
import json
from pathlib import Path

import pytest

from experiments import results_io
from experiments.studies import certified_twice as twice
from experiments.studies.certified_twice import are_alike, main
from experiments.studies.keep_models import MODELS
from fsa2lrnn.errors import UnsupportedFormat


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two kept models, nothing certified; a run says how often its model was certified before."""
    for name in ("t5/seed-0", "t5/seed-1"):
        (tmp_path / "t5").mkdir(exist_ok=True)
        (tmp_path / f"{name}.safetensors").write_bytes(name.encode())
    monkeypatch.setattr(twice, "MODELS", tmp_path)
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    asked = []

    def run(path, beside_a_busy_core):
        asked.append((path.stem, beside_a_busy_core))
        return {"certified": 7, "certificate_sha256": f"{asked.count((path.stem, beside_a_busy_core))}"}

    monkeypatch.setattr(twice, "run", run)
    return tmp_path, asked


def test_first_runs_come_first_and_second_ones_want_company(folder):
    main()
    assert folder[1] == [("seed-0", False), ("seed-1", False), ("seed-0", True), ("seed-1", True)]
    main()
    assert len(folder[1]) == 4
    rows = json.loads((folder[0] / "certified_twice.json").read_text())["results"]
    assert list(rows) == ["t5/seed-0", "t5/seed-1"]
    assert all(are_alike(row["runs"]) and len(row["runs"]) == 2 for row in rows.values())


def test_other_weights_are_certified_anew_and_rows_of_models_that_are_gone_go(folder):
    path, asked = folder
    main()
    (path / "t5/seed-0.safetensors").write_bytes(b"other weights")
    (path / "t5/seed-1.safetensors").unlink()
    main()
    assert asked[4:] == [("seed-0", False), ("seed-0", True)]
    assert list(twice.known()) == ["t5/seed-0"]


def test_fresh_forgets_those_that_are_named(folder):
    main()
    main(["t5/seed-1"], fresh=True)
    assert folder[1][4:] == [("seed-1", False), ("seed-1", True)]
    assert [len(row["runs"]) for row in twice.known().values()] == [2, 2]


def test_names_that_are_no_models_are_refused(folder):
    with pytest.raises(UnsupportedFormat, match="no model t5/seed-9: there are t5/seed-0, t5/seed-1"):
        main(["t5/seed-9"])
    assert not folder[1]


@pytest.mark.parametrize("other", [{"certified": 8}, {"certificate_sha256": "b"}])
def test_runs_with_another_n_or_other_bytes_are_unlike(other):
    run = {"certified": 7, "certificate_sha256": "a", "seconds": 1}
    assert are_alike([run, run | {"seconds": 2}])
    assert not are_alike([run, run | other])


def test_a_run_needs_no_company_on_a_busy_machine(monkeypatch, pool_here):
    started = []
    monkeypatch.setattr(twice.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(twice, "certified", _nothing)
    monkeypatch.setattr(twice, "ProcessPoolExecutor", pool_here)
    monkeypatch.setattr(twice.subprocess, "Popen", lambda *_: started.append(_Process()) or started[-1])
    for load, beside, is_busy, companions in ((1.9, False, False, 0), (1.9, True, True, 1), (2.0, True, True, 1)):
        monkeypatch.setattr(twice.os, "getloadavg", lambda load=load: (load, 0, 0))
        assert twice.run(Path("x"), beside)["beside_a_busy_core"] == is_busy
        assert len(started) == companions
    assert started[0].is_dead


def _nothing(_):
    return {}


class _Process:
    is_dead = False

    def kill(self):
        self.is_dead = True

    def wait(self):
        assert self.is_dead


def test_company_computes_until_it_is_no_longer_wanted():
    with twice._company(True):
        pass  # leaving kills it, or would never return


COMMITTED = results_io.read("certified_twice")["results"]


@pytest.mark.parametrize("name", COMMITTED)
def test_the_committed_runs_are_alike_and_what_the_table_of_models_says(name):
    row, table = COMMITTED[name], results_io.read("learned")["results"]["models"][name]
    assert are_alike(row["runs"])
    assert row["file_sha256"] == hashlib.sha256((MODELS / f"{name}.safetensors").read_bytes()).hexdigest()
    assert row["file_sha256"] == table["file_sha256"]
    assert row["runs"][0]["certified"] == table["certified"]
