"""Each number of the tables of models stands in its row and under its head."""

import json

import pytest

from experiments import model_tables, results_io

VERSIONS = {
    "command": "make it",
    "processor": "z80",
    "torch_threads": 2,
    "versions": {"torch": "9.9", "python": "3.99"},
}


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Writes results of a name."""
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    return lambda name, results: (tmp_path / f"{name}.json").write_text(json.dumps({**VERSIONS, "results": results}))


def bounds(lower, upper):
    return {"lower": lower, "upper": upper}


def test_block_sizes_are_numbers_where_bounds_meet_and_intervals_elsewhere(given):
    row = {"machine": "parity", "states": 2, "columns": None, "seconds": 0.04, "householder": bounds(None, None)}
    row |= {"complex": bounds(1, 1), "real": bounds(1, 2), "rational": bounds(2, 2), "any_depth": bounds(1, 1)}
    held_out = {"machines": 60, "met": {"real": 59}, "real_size_below_all_functions": {"0": 58, "2": 1}}
    given("block_sizes", {"machines": [row], "held_out": held_out})
    lines = model_tables.block_sizes().splitlines()
    assert lines[2] == "| parity | 2 | 1 | 1 to 2 | 2 | – | 1 | none | 0.0 |"
    assert "equal for 1 of them over ℂ, 0 over ℝ and 1 over ℚ" in lines[-1]
    assert model_tables.block_sizes_held_out() == (
        "60 random minimal DFAs of 4 to 12 states: both bounds meet for 59 over the real numbers. Of real blocks, 58 "
        "need n − 1, 1 need n − 3.\n"
    )


def test_a_model_says_what_is_proved_of_it_and_of_what_it_was_mended_to(given):
    refused, wrong = {"refused": "no room"}, {"refused": None, "change": {"A": 0.25}, "accuracy": 0.5, "certified": 40}
    proved = {"refused": None, "change": {"A": 0.5}, "accuracy": 1, "proved": {"arithmetic": "float32"}}
    row = {
        "task": "task:sum_mod(5)",
        "certified": 1500,
        "failure": {"length": 17},
        "extraction": {"isomorphic": True},
        "last_checkpoint": [{"length": 500, "last_position": {"accuracy": 0.75}}],
        "mended": [wrong, refused, proved],
    }
    given("learned", {"models": {"sum5/seed-0": row}})
    line = model_tables.learned_models().splitlines()[2]
    assert line == (
        "| sum5/seed-0 | 0.750 | 1,500 | 17 | yes | – | 25.0 %; ≤ 40, 0.5000 right | refused | 50.0 %; all lengths, "
        "float32 |"
    )
    line = model_tables.learned().splitlines()[2]
    assert line == "| sum_mod(5) | 1 | 1,500 | 17 | 1 of 1 | 25 to 25 % | 0 of 1 | 50 to 50 % | 1 of 1 |"


def test_certificates_found_twice_are_counted_by_what_came_of_them(given):
    def run(n, sha, busy=False):
        return {"certified": n, "certificate_sha256": sha, "seconds": 30.4, "beside_a_busy_core": busy}

    before = {"runs": [{"certified": 5, "seconds": 30, "load": 3}]}
    given("learned", {"models": {"a/0": {}, "a/1": before, "a/2": before, "a/3": {}, "a/4": before}})
    rows = {"a/0": [run(7, "s"), run(7, "s", True)], "a/1": [run(5, "t", True)], "a/2": [run(6, "u")]}
    rows["a/3"] = [run(1, "v"), run(1, "w")]
    given("certified_twice", {name: {"runs": runs} for name, runs in rows.items()})
    text = model_tables.certified_twice()
    assert text.startswith(
        "N was found more than once for 4 of 5 models, for 2 of them beside a busy core at least once, and came out "
        "alike for 3. Of 2 models two certificates were compared byte for byte: 1 are alike. Unlike: a/2. Of the other "
        "1 it was found once so far. A search took 30 to 30 seconds"
    )
