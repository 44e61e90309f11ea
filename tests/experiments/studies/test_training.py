import pytest
from typer.testing import CliRunner

from experiments import results_io, script
from experiments.studies import training as training_table


def document(seeds):
    judged = [{"length": 40, "words": 100}, {"length": 500, "words": 20}]
    runs = [{"seed": seed, "folder": "/x", "model": "/x/m", "step": 10, "last_checkpoint": judged} for seed in seeds]
    return {"task": "task:parity", "preset": "quick", "settings": {}, "seeds": runs, "paper_protocol_mean": 1.0}


def test_places_of_files_are_left_out_and_the_command_is_said():
    found = training_table.gathered(document([0, 3]))
    options = "--preset quick --seeds 0,3 --max-tokens 10000 --output FOLDER"
    assert found["command"] == f'fsa2lrnn train "task:parity" {options}'
    assert [list(seed) for seed in found["seeds"]] == [["seed", "step", "last_checkpoint"]] * 2


def test_folders_are_asked_for():
    asked = CliRunner().invoke(script.app(training_table.main), [])
    assert asked.exit_code == 2
    assert "Missing argument 'FOLDER…'" in asked.output


def test_the_committed_results_are_whole():
    tasks = results_io.read("training")["results"]
    found = {task["task"]: len(task["seeds"]) for task in tasks}
    assert found == {"task:sum_mod(5)": 5, "task:even_pair(5)": 5, "task:mod_arith(5)": 3}
    for task in tasks:
        accuracies = [seed["paper_protocol"]["accuracy"] for seed in task["seeds"]]
        assert task["paper_protocol_mean"] == pytest.approx(sum(accuracies) / len(accuracies))
