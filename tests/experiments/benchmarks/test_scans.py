"""The benchmark measures what it says, at a size that takes no time."""

import time

import pytest

from experiments.benchmarks import scans as bench_scans
from fsa2lrnn.lrnn.scans import METHODS


@pytest.mark.slow
def test_a_shape_is_measured():
    row = bench_scans.measure(1, 3, 2, 2)
    names = {*METHODS, "fused tokens", "authors' PScan", "authors' Sequential"}
    assert set(row["milliseconds"]) == names
    assert set(row["over_fused"]) == names - {"fused"}
    for name, ratio in row["over_fused"].items():
        assert ratio == row["milliseconds"][name] / row["milliseconds"]["fused"] > 0
    assert row["pscan_over_sequential"] > 0


@pytest.mark.slow
def test_the_baseline_that_is_quadratic_is_left_out_where_words_are_long(monkeypatch):
    monkeypatch.setattr(bench_scans, "_LONGEST_QUADRATIC", 2)
    assert "authors' Sequential" not in bench_scans.measure(1, 3, 1, 2)["milliseconds"]


def test_a_length_is_measured():
    row = bench_scans.measure_length(5, 2)
    assert (row["length"], row["heads"]) == (5, 1)
    assert row["nanoseconds_a_letter"] > 0


def test_actions_take_turns(monkeypatch):
    monkeypatch.setattr(bench_scans, "_TURN_MS", 0)
    order = []
    actions = {name: (lambda name=name: order.append(name)) for name in "ab"}
    times = bench_scans.interleaved(actions, turns=2)
    assert order == ["a", "b"] * 3
    assert set(times) == {"a", "b"}


def test_a_short_action_is_repeated_in_its_turn(monkeypatch):
    monkeypatch.setattr(bench_scans, "_TURN_MS", 20)
    calls = []
    times = bench_scans.interleaved({"nap": lambda: calls.append(time.sleep(2e-3))}, turns=2)
    assert 4 < len(calls) <= 21
    assert 2 <= times["nap"] < 20
