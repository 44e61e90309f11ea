"""Counts in place of values: ends, means, quantiles and exact marks of what was added in pieces."""

import math

import numpy as np
import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.huggingface.observed.values import BINS, QUANTILES, HeadValues, Measure


@pytest.mark.parametrize(("low", "high", "width"), [(0.0, 1.0, 1 / BINS), (-1.0, 1.0, 2 / BINS), (0.0, math.inf, 0.01)])
def test_what_is_said_of_drawn_values(low, high, width):
    rng = np.random.default_rng(0)
    drawn = rng.uniform(low, min(high, 1.5), size=(4_000, 3))
    drawn[7, 1] = low
    gathered = HeadValues(Measure("x", low, high, (low, 0.25)), 3)
    for piece in np.split(drawn, [1, 5, 5, 900]):
        gathered.add(piece)
    for head in range(3):
        of_head, found = drawn[:, head], gathered.spread(head)
        assert (found.least, found.most, found.n) == (of_head.min(), of_head.max(), 4_000)
        assert math.isclose(found.mean, of_head.mean())
        assert np.abs(np.array(found.quantiles) - np.quantile(of_head, QUANTILES)).max() < width
        assert found.counts.sum() == 4_000
        assert gathered.below_zero(head) == (of_head < 0).sum()
        assert found.exactly == {low: int((of_head == low).sum()), 0.25: 0}


def test_values_beyond_the_bins_are_counted_at_the_ends():
    gathered = HeadValues(Measure("key"), 1)
    gathered.add(np.array([[1.0000002], [1.0], [-0.1]]))
    found = gathered.spread(0)
    assert (found.least, found.most, found.exactly) == (-0.1, 1.0000002, {0.0: 0, 1.0: 1})
    assert (found.counts[0], found.counts[-1]) == (1, 2)


def test_a_constant_has_itself_as_quantiles():
    gathered = HeadValues(Measure("eigenvalue", low=-1), 1)
    gathered.add(np.full((5, 1), -1.0))
    assert gathered.spread(0).quantiles == (-1.0,) * 5
    assert gathered.spread(0).to_json()["quantiles"]["0.5"] == -1.0


def test_memory_does_not_grow_with_values():
    gathered = HeadValues(Measure("x"), 2)
    before = sum(part.nbytes for part in vars(gathered).values() if isinstance(part, np.ndarray))
    for _ in range(50):
        gathered.add(np.zeros((1_000, 2)))
    assert sum(part.nbytes for part in vars(gathered).values() if isinstance(part, np.ndarray)) == before


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_what_is_not_finite_is_named(odd):
    gathered = HeadValues(Measure("beta"), 2)
    with pytest.raises(UnsupportedFormat, match="beta of head 1 is not finite: the model overflows"):
        gathered.add(np.array([[0.0, 0.0], [0.0, odd]]))
