"""The table of learned models: what is kept of a row, what a second call does, what is summed up."""

import json

import pytest

from experiments import results_io
from experiments.studies import learned as learned_table
from experiments.studies.keep_models import MODELS
from experiments.studies.learned import SEARCH, main, searched, summary, table
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verification.falsify import Budget

COMMITTED = results_io.read("learned")["results"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two kept models, and nothing judged."""
    for name in ("t5/seed-0", "t5/seed-1"):
        (tmp_path / "t5").mkdir(exist_ok=True)
        (tmp_path / f"{name}.safetensors").write_bytes(name.encode())
    monkeypatch.setattr(learned_table, "MODELS", tmp_path)
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    return tmp_path


@pytest.fixture
def judged(monkeypatch, pool_here):
    """The names of the files that were judged, each with the same verdict."""
    files = []
    row = next(iter(COMMITTED["models"].values()))

    def verdict(path):
        files.append(path.stem)
        return {name: value for name, value in row.items() if name not in ("file_sha256", "runs")}

    def certified(path):
        files.append(path.stem)
        return {"certified": 7, "memory": 2, "method": "sets", "runs": [{"certified": 7, "load": len(files)}]}

    def searched(path):
        files.append(path.stem)
        return {"failure": row["failure"] | {"length": 50 - len(files)}, "searched": vars(SEARCH)}

    monkeypatch.setattr(learned_table, "judged", verdict)
    monkeypatch.setattr(learned_table, "searched", searched)
    monkeypatch.setattr(learned_table, "certified", certified)
    monkeypatch.setattr(learned_table, "ProcessPoolExecutor", pool_here)
    monkeypatch.setattr(learned_table, "as_completed", list)
    return files


def rows(folder):
    return list(json.loads((folder / "learned.json").read_text())["results"]["models"])


def test_a_row_is_judged_once(folder, judged):
    main()
    main()
    assert judged == ["seed-0", "seed-1"]
    (folder / "t5" / "seed-0.safetensors").write_bytes(b"other weights")
    main()
    assert judged[2:] == ["seed-0"]
    assert rows(folder) == ["t5/seed-0", "t5/seed-1"]


def test_named_rows_are_judged_anew_and_the_others_stay(folder, judged):
    main()
    main(["t5/seed-1"])
    assert judged == ["seed-0", "seed-1", "seed-1"]
    assert rows(folder) == ["t5/seed-0", "t5/seed-1"]
    main(fresh=True)
    assert judged[3:] == ["seed-0", "seed-1"]


def test_certificates_alone_are_found_anew_for_what_was_judged(folder, judged):
    main(["t5/seed-0"])
    with pytest.raises(UnsupportedFormat, match="t5/seed-1: not judged yet as it is: leave --certificates out"):
        main(["t5/seed-1"], certificates=True)
    before = json.loads((folder / "learned.json").read_text())["results"]["models"]["t5/seed-0"]
    main(certificates=True)
    main(certificates=True)
    assert judged == ["seed-0", "seed-0", "seed-0"]
    found = json.loads((folder / "learned.json").read_text())["results"]
    row = found["models"]["t5/seed-0"]
    runs = [{"certified": 7, "load": 2}, {"certified": 7, "load": 3}]
    assert row == before | {"certified": 7, "memory": 2, "method": "sets", "runs": runs}
    assert (found["summary"]["certified_several_times"], found["summary"]["certified_alike"]) == (1, 1)


def test_failing_words_alone_are_looked_for_once(folder, judged):
    main(["t5/seed-0"])
    before = json.loads((folder / "learned.json").read_text())["results"]["models"]["t5/seed-0"]
    main(failures=True)
    main(failures=True)
    assert judged == ["seed-0", "seed-0"]
    row = json.loads((folder / "learned.json").read_text())["results"]["models"]["t5/seed-0"]
    assert row == before | {"failure": before["failure"] | {"length": 48}, "searched": vars(SEARCH)}
    main(["t5/seed-0"], failures=True)
    assert judged == ["seed-0"] * 3
    with pytest.raises(UnsupportedFormat, match="t5/seed-1: not judged yet as it is: leave --failures out"):
        main(["t5/seed-1"], failures=True)
    with pytest.raises(UnsupportedFormat, match="one after the other"):
        main(failures=True, certificates=True)


def test_a_known_failing_word_is_kept_unless_a_shorter_one_is_found(monkeypatch):
    name = "tomita4/seed-0"
    monkeypatch.setattr(
        learned_table, "SEARCH", Budget(seconds=5, words=0, length=40, width=0, random_words=0, rounds=0)
    )
    before = COMMITTED["models"][name]["failure"]
    found = searched(MODELS / f"{name}.safetensors")["failure"]
    assert found["length"] <= before["length"]
    assert found["word"] == before["word"] or found["length"] < before["length"]


def test_n_is_the_same_each_time_that_it_is_found():
    for name, row in COMMITTED["models"].items():
        for run in row.get("runs", []):
            assert run["certified"] == row["certified"], name


def test_rows_of_models_that_are_gone_go_with_the_next_one_judged(folder, judged):
    main()
    (folder / "t5" / "seed-0.safetensors").unlink()
    main(["t5/seed-1"])
    assert rows(folder) == ["t5/seed-1"]
    assert len(judged) == 3


@pytest.mark.usefixtures("judged")
def test_names_that_are_no_models_are_refused(folder):
    with pytest.raises(UnsupportedFormat, match="no model t5/seed-9: there are t5/seed-0, t5/seed-1"):
        main(["t5/seed-9"])
    with pytest.raises(UnsupportedFormat, match="--fresh judges all anew: leave t5/seed-0 out, or --fresh"):
        main(["t5/seed-0"], fresh=True)
    assert not (folder / "learned.json").exists()


def test_the_committed_summary_is_that_of_its_rows():
    assert COMMITTED["summary"] == json.loads(json.dumps(summary(COMMITTED["models"])))
    assert table(COMMITTED["models"]).row_count == len(COMMITTED["models"]) >= 20


def test_every_kept_model_has_a_row_of_its_own_weights():
    import hashlib

    paths = {str(path.relative_to(MODELS).with_suffix("")): path for path in MODELS.rglob("*.safetensors")}
    assert set(paths) == set(COMMITTED["models"])
    for name, path in paths.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == COMMITTED["models"][name]["file_sha256"], name


def test_no_certificate_reaches_a_failing_word():
    for name, row in COMMITTED["models"].items():
        if row["failure"] is not None:
            assert row["certified"] != "all lengths", name
            assert row["certified"] < row["failure"]["length"], name
