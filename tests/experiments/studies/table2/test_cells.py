"""Cells from records: the choice of a rate, what is finished, runs that diverged."""

import pytest

from experiments.studies.table2 import cells
from experiments.studies.table2.columns import COLUMNS, TASKS

TASK = TASKS[0]


def record(name, rate, seed, at_40=0.5, end="steps", best=0.3):
    found = {
        "task": TASK,
        "network": name,
        "setting": rate,
        "seed": seed,
        "end": end,
        "settings": {"learning_rate": 1e-3, "device": "cpu"},
    }
    if end == "steps":
        lines = [
            {"length": length, "words": 100, "last_position": {"accuracy": share, "interval": [0, 1]}}
            for length, share in ((40, at_40), (100, 0.4), (500, 0.2))
        ]
        found |= {"step": 40_000, "paper_protocol": {"accuracy": best, "step": 7, "looks": 40}}
        found["last_checkpoint"] = lines
    return found


def test_the_rate_is_chosen_by_the_first_seed_at_the_length_trained_on():
    tried = [record("s4", "own", 0, 0.5), record("s4", "paper", 0, 0.6), record("s4", "own", 1, 0.9)]
    assert cells.choice(tried, TASK, "s4") == "paper"
    assert cells.choice(tried[:1], TASK, "s4") is None
    assert cells.choice([record("s4", "own", 0), record("s4", "paper", 0)], TASK, "s4") == "own"
    assert cells.choice([], TASK, "ours") == "paper"


def test_a_run_that_diverged_counts_as_ended_and_never_wins():
    tried = [record("s4", "own", 0, end="diverged"), record("s4", "paper", 0, 0.1)]
    assert cells.choice(tried, TASK, "s4") == "paper"
    found = cells.cell([record("vanilla", "paper", seed, end="diverged") for seed in (0, 1)], TASK, "vanilla")
    assert found["is_finished"]
    assert "best_look" not in found
    failed = [record("s4", "own", 0, end="failed"), record("s4", "paper", 0, 0.1)]
    assert cells.choice(failed, TASK, "s4") is None


def test_a_cell_means_over_its_seeds():
    records = [record("ours", "paper", seed, best=0.2 * seed) for seed in range(4)]
    found = cells.cell(records, TASK, "ours")
    assert (found["paper"], found["rate"], found["is_finished"]) == (1.0, "paper", False)
    assert found["best_look"] == pytest.approx(0.3)
    assert found["last"][0] == {"length": 40, "mean": 0.5, "least": 0.5, "most": 0.5}
    assert len(found["seeds"]) == 4


def test_a_cell_shows_the_better_rate_of_those_tried_until_one_is_chosen():
    found = cells.cell([record("s4", "own", 0)], TASK, "s4")
    assert (found["rate"], found["is_finished"], len(found["seeds"])) == ("own", False, 1)
    assert found["at_40_by_rate"] == {"own": 0.5}


def test_runs_of_ours_are_taken_over_and_those_that_were_cut_short_are_not_ended():
    kept = record("ours", "paper", 0), record("ours", "paper", 1, end="interrupted")
    seeds = [{name: run[name] for name in run if name not in ("task", "network", "setting")} for run in kept]
    taken = cells.trained_before([{"task": TASK, "settings": {"learning_rate": 1e-4, "device": "cpu"}, "seeds": seeds}])
    found = cells.cell(taken, TASK, "ours")
    assert [seed["seed"] for seed in found["seeds"]] == [0]
    assert found["seeds"][0]["learning_rate"] == 1e-4


def test_the_document_has_every_cell_finished_or_not():
    found = cells.document([])
    assert len(found["cells"]) == len(TASKS) * len(COLUMNS)
    assert not any(cell["is_finished"] for cell in found["cells"])
    assert set(found["chance"]) == set(TASKS)
