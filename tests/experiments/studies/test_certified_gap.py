"""What keeps certified lengths short: the bound on samples, and the rows that are written."""

import numpy as np
import pytest

from experiments import results_io
from experiments.studies import certified_gap
from experiments.studies.certified_gap import Words, gap, linear_margin, main
from experiments.studies.keep_models import MODELS
from fsa2lrnn import zoo
from fsa2lrnn.lrnn.checkpoint import load
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verification.plain import checked
from fsa2lrnn.verification.specification import specification_of


def test_a_linear_bound_is_the_margin_of_single_states_and_below_it_for_several():
    affine = switched(load(MODELS / "sum2/seed-2.safetensors"))
    tables, target = checked(affine), specification_of(affine, zoo.sum_mod(2)).target
    x0 = tables.weights["x0"]
    words = Words(np.array([target.start]), np.zeros(1, int), np.zeros(1, int), x0[None])
    for _ in range(8):
        words = certified_gap._read(tables, target, words, 2**8)
    least = certified_gap._least_margin(tables, target, words)
    assert linear_margin(tables, target, words, 8) == pytest.approx(least)
    merged = Words(words.state, 0 * words.letters, words.beam, words.x)
    assert linear_margin(tables, target, merged, 8) < least


def test_a_row_has_the_length_of_the_sets_and_samples_that_fail_where_the_model_does(monkeypatch):
    monkeypatch.setattr(certified_gap, "_SETS", 8)
    monkeypatch.setattr(certified_gap, "GRID", 4)
    row = gap(MODELS / "sum2/seed-2.safetensors", "task:sum_mod(2)", 571)
    assert row["memory"] == 2
    assert 0 < row["sets"] <= row["sets_without_rounding"] < row["hull"] <= row["linear"] <= row["samples"] <= 571
    assert 0 < row["growth"]["balls"] < row["growth"]["per_letter"]


def test_models_without_a_counterexample_or_with_a_long_one_are_left_out(tmp_path, monkeypatch):
    def row(n):
        return {"method": "sets", "certified": 1, "task": "task:parity", "failure": n and {"length": n}}

    lengths = dict.fromkeys(("sets", "sets_without_rounding", "hull", "linear", "samples"), 1)
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    monkeypatch.setattr(certified_gap, "gap", lambda *_: lengths | {"memory": 1, "growth": {}, "seconds": 0.0})
    results_io.write("learned", {"models": {"a/1": row(9), "b/0": row(5_000), "c/0": row(7), "d/0": row(None)}}, "test")
    main(longest=100)
    main(longest=100)
    rows = results_io.read("certified_gap")["results"]["models"]
    assert [(row["model"], row["counterexample"]) for row in rows] == [("c/0", 7), ("a/1", 9)]
