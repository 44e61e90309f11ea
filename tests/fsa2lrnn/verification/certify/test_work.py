"""Work is counted, not timed."""

import math
import warnings

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verification.certify.work import SearchCutShort, WorkBudget


def test_what_is_spent_is_gone():
    work = WorkBudget(100.0)
    assert work.allows(100.0)
    work.spend(60.0)
    assert work.allows(40.0)
    assert not work.allows(40.5)
    assert not work.is_cut_short


def test_only_a_cap_cuts_short(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    free, capped = WorkBudget(1.0), WorkBudget(1.0, seconds=2.0)
    clock[0] = 3.0
    assert free.allows(1.0)
    assert not capped.allows(1.0)
    with pytest.warns(SearchCutShort):
        capped.warn_if_cut_short(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        free.warn_if_cut_short(4)


@pytest.mark.parametrize("values", [(0.0, None), (math.inf, None), (math.nan, None), (1.0, 0.0), (1.0, -3.0)])
def test_a_budget_is_a_positive_number(values):
    with pytest.raises(UnsupportedFormat, match="positive number"):
        WorkBudget(*values)
