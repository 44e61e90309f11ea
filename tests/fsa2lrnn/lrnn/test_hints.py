"""Hints of parameters: what of the run's rate they leave."""

import pytest

from fsa2lrnn.lrnn.layers.base import Hint


@pytest.mark.parametrize(
    ("hint", "rate"), [(Hint(), 4e-3), (Hint(rate=1e-3), 1e-3), (Hint(factor=0.5), 2e-3), (Hint(1e-3, 0.0, 2.0), 2e-3)]
)
def test_a_hint_gives_a_rate_its_own_or_a_share_of_the_runs(hint, rate):
    assert hint.rate_for(4e-3) == pytest.approx(rate)
