"""Results come back as they were written, and say where they come from."""

from experiments import results_io


def test_round_trip(tmp_path, monkeypatch):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path / "new")
    path = results_io.write("table", [{"n": 3, "é": 0.5}], "python -m experiments.x")
    document = results_io.read("table")
    assert path == tmp_path / "new" / "table.json"
    assert document["results"] == [{"n": 3, "é": 0.5}]
    assert document["command"] == "python -m experiments.x"
    assert {"fsa2lrnn", "python", "torch", "numpy"} <= set(document["versions"])
