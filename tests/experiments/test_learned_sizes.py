"""What training made of block sizes is held against what theory asks for, cell by cell."""

import pytest

from experiments import learned_sizes
from experiments.learned_sizes import Cell, Threshold

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


def test_a_cell_is_learned_if_every_seed_is():
    assert Cell(2, spread(0.999, 0.99), spread(1.0, 1.0), 0).is_learned
    assert not Cell(2, spread(0.999, 0.98), spread(1.0, 1.0), 0).is_learned
    assert not Cell(2, spread(1.0, 1.0), spread(1.0, 1.0), 1).is_learned
    assert not Cell(2, None, None, 3).is_learned


def test_cells_are_gathered_by_size():
    made = {"task": "task:parity", "setting": "none", "seeds": 2}
    long = {**made, "network": "block-12", "ends": {"steps": 1, "stop_at": 1}}
    long["lengths"] = [{"last_position": spread(0.5, 0.4)}, {"last_position": spread(0.3, 0.2)}]
    short = {**made, "network": "block-2", "ends": {"diverged": 2}, "seeds": 0, "lengths": []}
    assert learned_sizes.gathered([long, short]) == {
        ("parity", "none"): [Cell(2, None, None, 2), Cell(12, spread(0.5, 0.4), spread(0.3, 0.2), 0)]
    }


def test_a_cell_as_text():
    assert learned_sizes.shown(Cell(2, spread(1.0, 1.0), spread(0.25, 0.2), 0)) == "**1.00** \\| 0.25"
    assert learned_sizes.shown(Cell(2, spread(0.8, 0.7), spread(0.25, 0.2), 1)) == "0.80 (0.70) \\| 0.25, 1 diverged"
    assert learned_sizes.shown(Cell(2, None, None, 3)) == "diverged"
