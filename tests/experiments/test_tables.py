"""Tables are those that their results give."""

import json

import pytest

from experiments import learned_sizes, learning_tables, model_tables, results_io
from experiments import tables as bench_tables
from experiments.learned_sizes import Cell, Threshold
from experiments.machines import of_zoo
from experiments.resumable import known_rows, run_due
from fsa2lrnn.automata import equivalent, zoo

VERSIONS = {"processor": "z80", "torch_threads": 2, "versions": {"torch": "9.9", "python": "3.99"}}


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Writes results of a name."""
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)

    def write(name, results):
        (tmp_path / f"{name}.json").write_text(json.dumps({**VERSIONS, "results": results}))

    return write


def cells(text, row):
    """Of a row of the first table, by head; row 0 is the first under the line."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return dict(zip(lines[0], lines[2 + row], strict=True))


def test_timings(given):
    row = {"batch": 8, "length": 4096, "heads": 4, "block": 2}
    first = {**row, "milliseconds": {"a": 20.0, "fused": 2.0, "b": 1.0}, "over_fused": {"a": 10.0, "b": 0.5}}
    given("bench_scans", [first, {**row, "milliseconds": {"a": 9000.0, "fused": 3.0}, "over_fused": {"a": 3000.0}}])
    text = bench_tables.scans()
    sizes = {"words": "8", "letters": "4,096", "blocks": "4 of 2"}
    assert cells(text, 0) == {**sizes, "fused, ms": "2.00", "a": "10.0", "b": "0.5"}
    assert cells(text, 1) == {**sizes, "fused, ms": "3.00", "a": "3,000", "b": ""}
    assert "2 threads" in text
    assert text.endswith("; z80; torch 9.9; Python 3.99.\n")
    given("bench_scan_lengths", [{"length": 1000, "block": 8, "nanoseconds_a_letter": 41.6}])
    assert cells(bench_tables.scan_lengths(), 0) == {"letters": "1,000", "ns a letter": "42"}
    row = {"task": "t", "layers": 1, "threads": 2, "batch": 128, "milliseconds": {"ours": 5.0, "theirs": 100.0}}
    row["over_ours"] = {"theirs": 20.0}
    given("bench_steps", [row, {**row, "layers": 3, "ours_over_floor": 1.37}])
    floor = "ours over the deep layers' matrix products"
    shown = {"task": "t", "layers": "1", "threads": "2", "ours, ms": "5.0", "theirs": "20.0", floor: ""}
    assert cells(bench_tables.steps(), 0) == shown
    assert cells(bench_tables.steps(), 1) == {**shown, "layers": "3", floor: "1.4"}
    rates = {"ours": 1200.0, "automata-lib": 6.0}
    given(
        "bench_words", [{"machine": "m", "million_letters_a_second": rates, "over": {"ours": {"automata-lib": 200.0}}}]
    )
    text = bench_tables.words()
    names = ("machine and way", "million letters a second", "times automata-lib", "times google-re2")
    assert cells(text, 0) == dict(zip(names, ("m: ours", "1,200.0", "200", ""), strict=True))
    assert cells(text, 1) == dict(zip(names, ("m: automata-lib", "6.0", "", ""), strict=True))


def test_gpu(given):
    ways = {
        "forward": {"milliseconds": 0.5, "share_of_copy": 0.91},
        "backward": {"milliseconds": 1, "share_of_copy": 0.8},
    }
    scan = {"kind": "dense", "dtype": "bfloat16", "batch": 1, "length": 65_536, **ways}
    steps = [
        {"precision": "full", "compile": False, "cuda_graph": True, "milliseconds": 2.5},
        {"precision": "mixed", "compile": True, "cuda_graph": False, "error": "no compiler"},
    ]
    layers = [{"layer": "s4", "milliseconds": 12.5, "replayed": 0.75}]
    seeds = {"seeds": 5, "in_turn_milliseconds": 10.0, "stacked_milliseconds": 3.0}
    document = {"device": "card", "copy_bytes_per_second": 3e12, "scans": [scan], "steps": steps, "seeds": seeds}
    document["layers"] = layers
    given("bench_gpu", document)
    text = bench_tables.gpu()
    row = cells(text, 0)
    assert row["forward, ms (of the copy)"] == "0.500 (91%)"
    assert row["backward, ms (of the copy)"] == "1.000 (80%)"
    assert "| full | no | yes | 2.50 |\n| mixed | yes | no | no compiler |" in text
    assert "| s4 | 12.50 | 0.75 |" in text
    assert "A step of 5 seeds: 10.00 ms one after another, 3.00 ms stacked; card, whose copy moves" in text
    assert "3,000 GB/s; launches included" in text


def test_runs_and_sweeps(given):
    line = {"length": 500, "last_position": {"accuracy": 0.5}, "whole_word": {"accuracy": 0.25}}
    seed = {"seed": 3, "step": 4000, "paper_protocol": {"accuracy": 0.75}, "last_checkpoint": [line]}
    given("training", [{"task": "t", "command": "fsa2lrnn train t", "seeds": [seed]}])
    text = bench_tables.runs()
    assert cells(text, 0) == {
        "task": "t", "seed": "3", "steps": "4,000", "best on the way": "0.750", "500": "0.5000 / 0.2500"
    }  # fmt: skip
    assert "```sh\nfsa2lrnn train t\n```" in text
    spread = {"mean": 0.5, "min": 0.25, "max": 0.75}
    line = {"length": 1000, "last_position": spread, "whole_word": dict.fromkeys(spread, 0.125)}
    cell = {"task": "t", "network": "f", "ends": {"steps": 2, "diverged": 1}}
    given("sweep_families", {"cells": [{**cell, "lengths": []}, {**cell, "lengths": [line]}]})
    text = bench_tables.sweep()
    assert cells(text, 0)["1,000 letters"] == "–"
    assert cells(text, 1) == {
        "task": "t", "network": "f", "ends": "2 steps, 1 diverged", "1,000 letters": "0.50 (0.25–0.75)"
    }  # fmt: skip


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


def cell(method, words, exact, seconds, end="done"):
    n = len(exact)
    runs = {"machine": list(range(n)), "exact": exact, "states": [4] * n, "seconds": seconds, "end": [end] * n}
    return {"method": method, "labels": "dense", "words": words, "wrong": 0.025, "runs": runs}


@pytest.fixture
def results(monkeypatch, tmp_path):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)


@pytest.mark.usefixtures("results")
def test_a_cell_says_how_many_of_how_many_and_what_has_not_been_run():
    cells = [cell("test", 50, [True, False], [0.01, 0.03]), cell("rpni", 50, [False], [10.0])]
    cells.append(cell("rpni", 200, [False], [None], "out of time with easier words"))
    results_io.write("noise", {"asked": 20, "limit": 10.0, "machines": [], "cells": cells}, "")
    lines = learning_tables.noise().splitlines()
    assert lines[2] == "| every letter | 50 | 2.5 % | not run | 1 of 2 (0.02) | 0 of 1 (10) | not run | not run |"
    assert lines[3] == "| every letter | 200 | 2.5 % | not run | not run | 0 of 1 (out of time) | not run | not run |"
    assert "4 of 200 runs were done" in lines[-1]


@pytest.mark.usefixtures("results")
def test_what_has_no_ratio_is_left_empty():
    row = {"task": "task:sum_mod(5)", "seeds": 5, "both": 5, "proved_seconds": 0.24, "released_seconds": 30.4}
    none = dict.fromkeys(("proved_seconds", "released_seconds", "ratio", "least_ratio"))
    rows = [{**row, "ratio": 126.4, "least_ratio": 60.1}, {"task": "task:mod_arith(5)", "seeds": 1, "both": 0, **none}]
    results_io.write("sooner", {"tasks": rows}, "")
    lines = learning_tables.sooner().splitlines()
    assert lines[2:4] == ["| sum_mod(5) | 5 of 5 | 0.2 | 30.4 | 126 | 60 |", "| mod_arith(5) | 0 of 1 |  |  |  |  |"]


VERSIONS_OF_MODEL_TABLES = {
    "command": "make it",
    "processor": "z80",
    "torch_threads": 2,
    "versions": {"torch": "9.9", "python": "3.99"},
}


@pytest.fixture
def given_of_model_tables(tmp_path, monkeypatch):
    """Writes results of a name."""
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    return lambda name, results: (tmp_path / f"{name}.json").write_text(
        json.dumps({**VERSIONS_OF_MODEL_TABLES, "results": results})
    )


def bounds(lower, upper):
    return {"lower": lower, "upper": upper}


def test_block_sizes_are_numbers_where_bounds_meet_and_intervals_elsewhere(given_of_model_tables):
    row = {"machine": "parity", "states": 2, "columns": None, "seconds": 0.04, "householder": bounds(None, None)}
    row |= {"complex": bounds(1, 1), "real": bounds(1, 2), "rational": bounds(2, 2), "any_depth": bounds(1, 1)}
    held_out = {"machines": 60, "met": {"real": 59}, "real_size_below_all_functions": {"0": 58, "2": 1}}
    given_of_model_tables("block_sizes", {"machines": [row], "held_out": held_out})
    lines = model_tables.block_sizes().splitlines()
    assert lines[2] == "| parity | 2 | 1 | 1 to 2 | 2 | – | 1 | none | 0.0 |"
    assert "equal for 1 of them over ℂ, 0 over ℝ and 1 over ℚ" in lines[-1]
    assert model_tables.block_sizes_held_out() == (
        "60 random minimal DFAs of 4 to 12 states: both bounds meet for 59 over the real numbers. Of real blocks, 58 "
        "need n − 1, 1 need n − 3.\n"
    )


def test_models_say_what_is_proved_and_certificates_are_counted_twice(given_of_model_tables):
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
    given_of_model_tables("learned", {"models": {"sum5/seed-0": row}})
    line = model_tables.learned_models().splitlines()[2]
    assert line == (
        "| sum5/seed-0 | 0.750 | 1,500 | 17 | yes | – | 25.0 %; ≤ 40, 0.5000 right | refused | 50.0 %; all lengths, "
        "float32 |"
    )
    line = model_tables.learned().splitlines()[2]
    assert line == "| sum_mod(5) | 1 | 1,500 | 17 | 1 of 1 | 25 to 25 % | 0 of 1 | 50 to 50 % | 1 of 1 |"

    def run(n, sha, busy=False):
        return {"certified": n, "certificate_sha256": sha, "seconds": 30.4, "beside_a_busy_core": busy}

    before = {"runs": [{"certified": 5, "seconds": 30, "load": 3}]}
    given_of_model_tables("learned", {"models": {"a/0": {}, "a/1": before, "a/2": before, "a/3": {}, "a/4": before}})
    rows = {"a/0": [run(7, "s"), run(7, "s", True)], "a/1": [run(5, "t", True)], "a/2": [run(6, "u")]}
    rows["a/3"] = [run(1, "v"), run(1, "w")]
    given_of_model_tables("certified_twice", {name: {"runs": runs} for name, runs in rows.items()})
    text = model_tables.certified_twice()
    assert text.startswith(
        "N was found more than once for 4 of 5 models, for 2 of them beside a busy core at least once, and came out "
        "alike for 3. Of 2 models two certificates were compared byte for byte: 1 are alike. Unlike: a/2. Of the other "
        "1 it was found once so far. A search took 30 to 30 seconds"
    )


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
