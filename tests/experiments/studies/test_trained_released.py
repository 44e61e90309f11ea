"""A cell is trained and judged; a study goes on where it stopped."""

import pytest

from experiments import results_io
from experiments.studies import trained_released
from experiments.studies.trained_released import cell, goes_on, known_of, main

pytest.importorskip("transformers")


def test_how_a_cell_ends(monkeypatch):
    found = cell("flip_flop", "qwen3-next", 0, steps=3, seconds=60)
    assert (found["end"], found["step"], found["learned"], list(found["last"])) == ("steps", 3, False, ["40"])
    found = cell("flip_flop", "qwen3-next", 0, steps=50, seconds=0)
    assert (found["end"], found["step"]) == ("seconds", 0)
    easy = {"evaluate_every": 2, "stop_at": 0.01}
    monkeypatch.setattr(trained_released, "SETTINGS", {**trained_released.SETTINGS, **easy})
    monkeypatch.setattr(trained_released, "LENGTHS", (40, 80))
    found = cell("flip_flop", "qwen3-next", 0, steps=50, seconds=60)
    assert (found["end"], found["step"], list(found["last"])) == ("learned", 2, ["40", "80"])


def test_what_is_known_without_training():
    known = known_of()
    assert {task: said["qwen3-next"]["answer"] for task, said in known.items()} == {
        "parity": "no", "flip_flop": "yes", "sum_mod(3)": "no", "sum_mod(5)": "no", "group(S3)": "no", "ab_star": "yes",
    }  # fmt: skip
    assert known["parity"]["olmo-hybrid"] == {"answer": "yes", "layers": 1}
    assert known["ab_star"]["olmo-hybrid"] == {"answer": "yes", "layers": 2}


@pytest.mark.parametrize(
    ("before", "steps", "seconds", "again"),
    [
        ({"end": "learned", "steps": 5, "seconds": 5}, 100, 100, False),
        ({"end": "steps", "steps": 5, "seconds": 5}, 5, 100, False),
        ({"end": "steps", "steps": 5, "seconds": 5}, 6, 5, True),
        ({"end": "seconds", "steps": 5, "seconds": 5}, 9, 5, False),
        ({"end": "seconds", "steps": 5, "seconds": 5}, 5, 6, True),
    ],
)
def test_what_is_taken_up_again(before, steps, seconds, again):
    assert goes_on(before, steps, seconds) is again


def test_a_study_goes_on_where_it_stopped(monkeypatch, tmp_path):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    monkeypatch.setattr(trained_released, "TASKS", ("parity",))
    monkeypatch.setattr(trained_released, "SEEDS", (0,))
    asked = []

    def trained(_task, layer, _seed, steps, seconds):
        asked.append(layer)
        end = "learned" if layer == "mamba-2" else "steps"
        return {"steps": steps, "seconds": seconds, "end": end, "step": 1, "learned": False, "last": {}}

    monkeypatch.setattr(trained_released, "cell", trained)
    monkeypatch.setattr(trained_released, "pdssm", lambda: None)
    main(10, 1.0)
    main(10, 1.0)
    assert asked == ["olmo-hybrid", "qwen3-next", "mamba-2", "pd-ssm"]
    main(20, 1.0)
    assert asked[4:] == ["olmo-hybrid", "qwen3-next", "pd-ssm"]
    cells = results_io.read("trained_released")["results"]["cells"]
    assert {(one["layer"], one["steps"]) for one in cells} == {
        ("olmo-hybrid", 20), ("qwen3-next", 20), ("mamba-2", 10), ("pd-ssm", 20),
    }  # fmt: skip
