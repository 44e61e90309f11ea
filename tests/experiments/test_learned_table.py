"""The table of learned models: what is kept of a row, what a second call does, what is summed up."""

import json

import pytest

from experiments import learned_table, results_io
from experiments.learned_table import LEARNED, main, summary, table

COMMITTED = results_io.read("learned")["results"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for ending in ("json", "safetensors"):
        (tmp_path / "t5").mkdir(exist_ok=True)
        (tmp_path / "t5" / f"seed-0.{ending}").write_bytes((LEARNED / "tomita5" / f"seed-0.{ending}").read_bytes())
    monkeypatch.setattr(learned_table, "LEARNED", tmp_path)
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    return tmp_path


def test_a_row_is_judged_once(folder, monkeypatch):
    judged = []
    row = next(iter(COMMITTED["models"].values()))

    class Pool:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, _function, path):
            judged.append(path.name)
            return Answer()

    class Answer:
        def result(self):
            return {name: value for name, value in row.items() if name != "file_sha256"}

    monkeypatch.setattr(learned_table, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(learned_table, "as_completed", list)
    main([])
    main([])
    assert judged == ["seed-0.safetensors"]
    (folder / "t5" / "seed-0.safetensors").write_bytes(b"other weights")
    main([])
    assert len(judged) == 2
    written = json.loads((folder / "learned.json").read_text())
    assert list(written["results"]["models"]) == ["t5/seed-0"]


def test_the_committed_summary_is_that_of_its_rows():
    assert COMMITTED["summary"] == json.loads(json.dumps(summary(COMMITTED["models"])))
    assert table(COMMITTED["models"]).row_count == len(COMMITTED["models"]) >= 20


def test_every_kept_model_has_a_row_of_its_own_weights():
    import hashlib

    paths = {str(path.relative_to(LEARNED).with_suffix("")): path for path in LEARNED.rglob("*.safetensors")}
    assert set(paths) == set(COMMITTED["models"])
    for name, path in paths.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == COMMITTED["models"][name]["file_sha256"], name


def test_no_certificate_reaches_a_failing_word():
    for name, row in COMMITTED["models"].items():
        if row["failure"] is not None:
            assert row["certified"] != "all lengths", name
            assert row["certified"] < row["failure"]["length"], name
