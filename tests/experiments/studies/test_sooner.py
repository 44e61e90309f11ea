import pytest

from experiments import results_io
from experiments.studies import sooner
from experiments.studies.sooner import row, summary


def kept(accuracy):
    return {"seed": 1, "paper_protocol": {"accuracy": accuracy, "step": 4_000}}


def test_the_released_rules_time_is_its_steps_times_that_of_a_step(monkeypatch):
    monkeypatch.setattr(sooner, "STEPS", {1: 2})
    found = row("task:parity", "quick", kept(1.0))
    assert found["released_seconds"] == pytest.approx(4 * found["milliseconds_a_step"])
    assert found["ratio"] == pytest.approx(found["released_seconds"] / found["proved_seconds"])
    assert 0 < found["proved_seconds"] < 20


def test_no_ratio_where_the_rule_never_got_there(monkeypatch):
    monkeypatch.setattr(sooner, "seconds_a_step", lambda *_: 0.01)
    found = row("task:parity", "quick", kept(0.99))
    assert (found["released_seconds"], found["ratio"]) == (None, None)
    (of_task,) = summary([found, {**found, "proved_seconds": 2.0, "released_seconds": 40.0, "ratio": 20.0}])
    assert of_task == {
        "task": "task:parity", "seeds": 2, "both": 1, "proved_seconds": 2.0, "released_seconds": 40.0, "ratio": 20.0,
        "least_ratio": 20.0,
    }  # fmt: skip


def test_every_seed_that_was_kept_is_a_row(monkeypatch, tmp_path):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    tasks = [{"task": "task:parity", "preset": "quick", "seeds": [kept(1.0), kept(0.5)]}]
    results_io.write("training", tasks, "")
    monkeypatch.setattr(sooner, "seconds_a_step", lambda *_: 0.01)
    sooner.main()
    found = results_io.read("sooner")["results"]
    assert (len(found["rows"]), found["tasks"][0]["both"]) == (2, 1)
