"""What has a row is not run again, and each row is written as soon as it is there."""

import pytest

from experiments import results_io
from experiments.resumable import known_rows, run_due


def test_a_study_that_stopped_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    plan = [("a", 0), ("a", 1), ("b", 0)]

    def run(task, seed):
        if task == "b" and not is_whole:
            raise KeyboardInterrupt
        return {"task": task, "seed": seed, "nth": len(known_rows("study"))}

    def write(runs):
        results_io.write("study", {"runs": runs}, "python -m study")

    is_whole = False
    with pytest.raises(KeyboardInterrupt):
        run_due(plan, ("task", "seed"), known_rows("study"), run, write)
    assert [(row["task"], row["seed"]) for row in known_rows("study")] == plan[:2]
    is_whole = True
    rows = run_due(plan, ("task", "seed"), known_rows("study"), run, write)
    assert [row["nth"] for row in rows] == [0, 1, 2]
    assert rows == known_rows("study")
