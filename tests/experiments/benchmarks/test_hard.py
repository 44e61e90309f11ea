"""The benchmark compares what computes the same, at a size that takes no time."""

import pytest
import torch

from experiments.benchmarks import hard
from fsa2lrnn.lrnn.scans.hard import hard_scan


def test_all_ways_compute_the_same():
    drawn = torch.Generator().manual_seed(0)
    logits, index = torch.randn(3, 2, 4, 4, generator=drawn), torch.randint(3, (5, 7), generator=drawn)
    state = torch.eye(4)[torch.randint(4, (5, 2), generator=drawn)]
    wanted = hard_scan(index, logits, state)
    assert torch.equal(hard.by_einsum(index, logits, state), wanted)
    assert torch.equal(hard.by_tables(index, logits, state), wanted)


@pytest.mark.slow
def test_a_shape_is_measured():
    row = hard.measure(2, 3, 2, 2)
    assert set(row["milliseconds"]) == {"einsum", "fused tokens", "hard"}
    assert row["over_hard"]["einsum"] == row["milliseconds"]["einsum"] / row["milliseconds"]["hard"]
    assert set(row["steps_per_second"]) == {"chunked", "hard"}
