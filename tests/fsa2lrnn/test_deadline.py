import math
from types import SimpleNamespace

import pytest

from fsa2lrnn import deadline
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime, UnsupportedFormat


@pytest.fixture
def now(monkeypatch):
    """A clock that tests set."""
    times = [100.0]
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: times[0]))
    return times


def test_the_time_runs_from_construction(now):
    limit = Deadline.of(5)
    now[0] += 2
    assert (limit.passed(), limit.left()) == (2, 3)
    limit.check("nothing")
    part = limit.share(0.5)
    now[0] += 1.5
    assert (limit.left(), part.left()) == (1.5, 0)
    said = r"counting: a share of 1\.5 s of the limit of 5 s has passed: give more seconds"
    with pytest.raises(OutOfTime, match=said):
        part.check("counting")
    assert issubclass(OutOfTime, BudgetExceeded)


def test_no_limit_has_no_end_and_no_part_of_it_has(now):
    assert Deadline.of(None).left() == NEVER.share(0.1).left() == math.inf
    now[0] += 1e9
    NEVER.check("nothing")


def test_a_deadline_stands_for_itself_and_other_limits_are_positive():
    limit = Deadline(1.0)
    assert Deadline.of(limit) is limit
    for seconds in (0, -1, math.nan):
        with pytest.raises(UnsupportedFormat, match="a time limit is a positive number, or None for no limit"):
            Deadline.of(seconds)
