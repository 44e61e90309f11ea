"""Each number stands in its row and under its head."""

import json

import pytest

from experiments import results_io
from experiments import tables as bench_tables

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


def test_scans(given):
    row = {"batch": 8, "length": 4096, "heads": 4, "block": 2}
    first = {**row, "milliseconds": {"a": 20.0, "fused": 2.0, "b": 1.0}, "over_fused": {"a": 10.0, "b": 0.5}}
    given("bench_scans", [first, {**row, "milliseconds": {"a": 9000.0, "fused": 3.0}, "over_fused": {"a": 3000.0}}])
    text = bench_tables.scans()
    sizes = {"words": "8", "letters": "4,096", "blocks": "4 of 2"}
    assert cells(text, 0) == {**sizes, "fused, ms": "2.00", "a": "10.0", "b": "0.5"}
    assert cells(text, 1) == {**sizes, "fused, ms": "3.00", "a": "3,000", "b": ""}
    assert "2 threads" in text
    assert text.endswith("; z80; torch 9.9; Python 3.99.\n")


def test_lengths(given):
    given("bench_scan_lengths", [{"length": 1000, "block": 8, "nanoseconds_a_letter": 41.6}])
    assert cells(bench_tables.scan_lengths(), 0) == {"letters": "1,000", "ns a letter": "42"}


def test_steps(given):
    row = {"task": "t", "layers": 1, "threads": 2, "batch": 128, "milliseconds": {"ours": 5.0, "theirs": 100.0}}
    row["over_ours"] = {"theirs": 20.0}
    given("bench_steps", [row, {**row, "layers": 3, "ours_over_floor": 1.37}])
    floor = "ours over the deep layers' matrix products"
    shown = {"task": "t", "layers": "1", "threads": "2", "ours, ms": "5.0", "theirs": "20.0", floor: ""}
    assert cells(bench_tables.steps(), 0) == shown
    assert cells(bench_tables.steps(), 1) == {**shown, "layers": "3", floor: "1.4"}


def test_words(given):
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


def test_runs(given):
    line = {"length": 500, "last_position": {"accuracy": 0.5}, "whole_word": {"accuracy": 0.25}}
    seed = {"seed": 3, "step": 4000, "paper_protocol": {"accuracy": 0.75}, "last_checkpoint": [line]}
    given("training", [{"task": "t", "command": "fsa2lrnn train t", "seeds": [seed]}])
    text = bench_tables.runs()
    assert cells(text, 0) == {
        "task": "t", "seed": "3", "steps": "4,000", "best on the way": "0.750", "500": "0.5000 / 0.2500"
    }  # fmt: skip
    assert "```sh\nfsa2lrnn train t\n```" in text


def test_sweep(given):
    spread = {"mean": 0.5, "min": 0.25, "max": 0.75}
    line = {"length": 1000, "last_position": spread, "whole_word": dict.fromkeys(spread, 0.125)}
    cell = {"task": "t", "network": "f", "ends": {"steps": 2, "diverged": 1}}
    given("sweep_families", {"cells": [{**cell, "lengths": []}, {**cell, "lengths": [line]}]})
    text = bench_tables.sweep()
    assert cells(text, 0)["1,000 letters"] == "–"
    assert cells(text, 1) == {
        "task": "t", "network": "f", "ends": "2 steps, 1 diverged", "1,000 letters": "0.50 (0.25–0.75)"
    }  # fmt: skip
