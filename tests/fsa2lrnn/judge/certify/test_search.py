"""The search: more memory is taken where it pays, and requests that make no sense are named."""

import time

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.judge.certify import certify
from fsa2lrnn.judge.certify.search import Search
from fsa2lrnn.judge.goal import goal_for
from fsa2lrnn.judge.check.slack import Slack


def test_auto_is_as_good_as_each_memory_it_tries(drifting):
    machine, tables = drifting
    best = certify(tables, machine)
    assert best.horizon >= max(certify(tables, machine, memory).horizon for memory in (1, 2))


def test_sets_are_stored_up_to_the_horizon(drifting):
    machine, tables = drifting
    certificate = certify(tables, machine, 1)
    lengths = [sets.length for sets in certificate.tube.stored]
    assert lengths == sorted(set(lengths))
    assert certificate.tube.start < lengths[0] <= lengths[-1] == certificate.horizon


def test_a_deadline_in_the_past_still_gives_a_walk(drifting):
    machine, tables = drifting
    search = Search(tables, goal_for(tables, machine), Slack(), time.monotonic() - 1)
    assert search.best("auto").horizon > 5


def test_memories_that_are_none_are_refused(drifting):
    machine, tables = drifting
    for memory in (0, "all", 14, 65):
        with pytest.raises(UnsupportedFormat, match="memory = "):
            certify(tables, machine, memory)
