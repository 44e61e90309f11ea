"""Soundness: drawn models and their runs."""

import json
from collections import Counter
from dataclasses import replace

import pytest
import torch

from fsa2lrnn import zoo
from fsa2lrnn.nn.switched import switched, table_error
from verify.soundness import __main__ as command
from verify.soundness import near_ties, run
from verify.soundness.models import RULES, Drawn, model

PLAIN = Drawn("none", 1e3, True, 0.0, False, True, 0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("layer_norm", [False, True])
def test_without_noise_a_model_computes_its_machine_for_a_while(rule, layer_norm):
    machine = zoo.sum_mod(3)
    word = "122011"
    for cancelling in (False, True):
        made = model(replace(PLAIN, rule=rule, layer_norm=layer_norm, cancelling=cancelling), machine)
        assert made.transduce(word) == machine.transduce(word)


@pytest.mark.parametrize("rule", RULES)
def test_the_weight_changes_tables_by_rounding_alone(rule):
    plain, single = (model(replace(PLAIN, rule=rule, double=double), zoo.parity()) for double in (True, False))
    large = model(replace(PLAIN, rule=rule, weight=1e6), zoo.parity())
    torch.testing.assert_close(switched(large).A, switched(plain).A, atol=1e-6, rtol=0)
    assert single.dtype == torch.float32
    assert table_error(large)[0].max() > 10 * table_error(plain)[0].max()


def test_look_ups_have_no_sums_and_committed_counts_nothing_wrong():
    made = model(replace(PLAIN, cancelling=False), zoo.parity())
    assert not table_error(made)[0].any()
    counts = Counter(json.loads(command.COUNTS.read_bytes())["counts"])
    assert counts["certified beyond 0"] > counts["models"] / 2 > 0
    assert not run.wrong(counts)


@pytest.mark.long
def test_no_word_within_what_a_verdict_covers_is_wrong(monkeypatch):
    monkeypatch.setattr(run, "THREADS", (1,))
    monkeypatch.setattr(run, "BATCHES", (1, 3))
    counts = run.run(5)
    assert counts["models"] == len(RULES)
    assert counts["positions certified"] > 1_000
    assert not run.wrong(counts)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", near_ties.DTYPES[4:])
def test_no_verdict_of_near_ties_is_wrong(monkeypatch, dtype):
    monkeypatch.setattr(near_ties, "DTYPES", (dtype,))
    seeds = range(len(near_ties.FINITE))
    assert all(near_ties.drawn(seed).dtype == dtype for seed in seeds)
    counts = sum(map(near_ties.examine, seeds), Counter())
    assert counts["positions near ties"] > 100
    assert not run.wrong(counts)


def test_a_horizon_too_long_is_found(monkeypatch):
    monkeypatch.setattr(run, "THREADS", (1,))
    monkeypatch.setattr(run, "BATCHES", (3,))
    choice, machine = run.drawn(0)
    counts = run.Counter()
    other = type(machine)(machine.delta, machine.outputs[1:] + machine.outputs[:1], machine.start, machine.alphabet)
    run.run_words(run.model(choice, machine), other, 5, iter([("sequential", 3, 1)]), "mutant", counts)
    assert counts["wrong mutant"] > 0
