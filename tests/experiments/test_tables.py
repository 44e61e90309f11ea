"""Tables are those that their results give."""

import pytest

from experiments import learned_sizes, results_io
from experiments.learned_sizes import Cell, Threshold
from experiments.machines import of_zoo
from experiments.resumable import known_rows, run_due
from fsa2lrnn.automata import equivalent, zoo

GROUP = {"columns": {"lower": 5, "upper": 5}, "real": {"lower": 2, "upper": 2}}
REGISTER = {"columns": None, "real": {"lower": 3, "upper": 3}}


def spread(mean, least):
    return {"mean": mean, "min": least, "max": 1.0}


@pytest.mark.parametrize(
    ("known", "rule", "expected"),
    [
        (GROUP, "none", Threshold(2, True)),
        (GROUP, "clip-2", Threshold(2, True)),  # orthogonal blocks
        (GROUP, "clip-1", Threshold(5, True)),
        ({**GROUP, "columns": {"lower": 3, "upper": 5}}, "clip-1", None),
        (REGISTER, "none", Threshold(3, True)),
        (REGISTER, "clip-2", Threshold(3, False)),
        (REGISTER, "clip-1", None),
    ],
)
def test_what_theory_asks_for(known, rule, expected):
    assert learned_sizes.predicted(known, rule) == expected


def test_cells_are_learned_by_every_seed_and_gathered_by_size():
    assert Cell(2, spread(0.999, 0.99), spread(1.0, 1.0), 0).is_learned
    assert not Cell(2, spread(0.999, 0.98), spread(1.0, 1.0), 0).is_learned
    assert not Cell(2, spread(1.0, 1.0), spread(1.0, 1.0), 1).is_learned
    assert not Cell(2, None, None, 3).is_learned
    made = {"task": "task:parity", "setting": "none", "seeds": 2}
    long = {**made, "network": "block-12", "ends": {"steps": 1, "stop_at": 1}}
    long["lengths"] = [{"last_position": spread(0.5, 0.4)}, {"last_position": spread(0.3, 0.2)}]
    short = {**made, "network": "block-2", "ends": {"diverged": 2}, "seeds": 0, "lengths": []}
    assert learned_sizes.gathered([long, short]) == {
        ("parity", "none"): [Cell(2, None, None, 2), Cell(12, spread(0.5, 0.4), spread(0.3, 0.2), 0)]
    }
    assert learned_sizes.shown(Cell(2, spread(1.0, 1.0), spread(0.25, 0.2), 0)) == "**1.00** \\| 0.25"
    assert learned_sizes.shown(Cell(2, spread(0.8, 0.7), spread(0.25, 0.2), 1)) == "0.80 (0.70) \\| 0.25, 1 diverged"
    assert learned_sizes.shown(Cell(2, None, None, 3)) == "diverged"
    source = "random_dfa(12, 3, seed=2)"
    machine, facts = of_zoo(source)
    assert facts == {"machine": source, "states": machine.n_states, "letters": 3}
    assert machine.n_states < zoo.from_task(source).n_states
    assert equivalent(machine, zoo.from_task(source)) is None


def test_round_trip(tmp_path, monkeypatch):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path / "new")
    path = results_io.write("table", [{"n": 3, "é": 0.5}], "python -m experiments.x")
    document = results_io.read("table")
    assert path == tmp_path / "new" / "table.json"
    assert document["results"] == [{"n": 3, "é": 0.5}]
    assert document["command"] == "python -m experiments.x"
    assert {"fsa2lrnn", "python", "torch", "numpy"} <= set(document["versions"])


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
