"""The paper's speed comparison: what is measured is one function, and ratios are of what was measured."""

import pytest
import torch

from experiments.benchmarks import paper_speed
from experiments.benchmarks.paper_speed import BLOCKS, CASES, NAMES, PSCAN, SEQUENTIAL
from experiments.benchmarks.steps import FORWARDS, OURS, prepare
from fsa2lrnn.training.settings import preset


@pytest.mark.parametrize("what", [what for what, _ in CASES])
def test_ratios_are_of_medians(monkeypatch, what):
    monkeypatch.setattr(paper_speed, "TURNS", 1)
    row = paper_speed.measure(what, 5, 2, 4, embedding_dim=8, batch=3)
    ms = row["milliseconds"]
    assert row["sequential_over_pscan"] == ms[SEQUENTIAL] / ms[PSCAN]
    assert row["best_over_ours"] == min(ms[SEQUENTIAL], ms[PSCAN]) / ms[OURS]
    assert row["paper_sequential_over_pscan"] is None


@pytest.mark.parametrize(("block", "heads"), BLOCKS)
def test_the_networks_are_one_function(block, heads):
    rule = "released" if block > 1 else "clip"
    settings = preset("released", "task:sum_mod(5)", block=block, heads=heads, normalisation=rule, length=9, batch=2)
    model, batch = prepare(settings)
    model.double()
    with torch.no_grad():
        first, *others = (FORWARDS[name](model, batch.tokens) for name in NAMES)
    for other in others:
        torch.testing.assert_close(other, first, rtol=1e-9, atol=1e-10)
