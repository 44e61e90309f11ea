"""The benchmark of layers measures what it says."""

import pytest
import torch

from experiments.benchmarks import layers


@pytest.mark.parametrize("name", ["s4d", "wkv", "diagonal scan"])
def test_a_row_is_a_ratio_of_medians(monkeypatch, name):
    monkeypatch.setattr(layers, "TURNS", 1)
    row = layers.measure(name, 2, 12)
    milliseconds = row["milliseconds"]
    assert row["plain_over_ours"] == milliseconds["plain"] / milliseconds["ours"] > 0
    assert (row["words"], row["letters"]) == (2, 12)


@pytest.mark.parametrize("name", layers.SCANS)
def test_the_recurrences_that_are_compared_are_one_function(name):
    steps = layers.scan_steps(name, 2, 12)
    found = []
    for action in steps.values():
        action()
        found.append([weight.grad.clone() for weight in action.args[1]])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
