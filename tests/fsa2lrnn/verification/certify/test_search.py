"""The search: more memory is taken where it pays, and requests that make no sense are named."""

import pytest

from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.certify.search import TubeSearch
from fsa2lrnn.verification.certify.work import SearchCutShort, WorkBudget
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.plain import plain
from fsa2lrnn.verification.specification import specification_of


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


def test_without_work_there_is_still_a_walk_along_single_words(drifting):
    machine, tables = drifting
    search = TubeSearch(plain(tables), specification_of(tables, machine).target, Slack(), WorkBudget(1.0))
    assert search.best("auto").horizon > 5


def test_the_same_work_finds_the_same_certificate(drifting):
    """Whatever else the machine is doing: no clock is looked at."""
    machine, tables = drifting
    first, second = (certify(tables, machine, work=3e7) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert certify(tables, machine, work=1e6).horizon < first.horizon <= certify(tables, machine).horizon


def test_a_cap_on_seconds_says_so_where_it_bites(drifting):
    machine, tables = drifting
    with pytest.warns(SearchCutShort, match=r"cut short after 1e-06 s, with N = \d+: without a time limit"):
        short = certify(tables, machine, seconds=1e-6)
    assert 1 <= short.horizon <= certify(tables, machine).horizon
    assert check(short, tables).horizon == short.horizon


def test_memories_that_are_none_are_refused(drifting):
    machine, tables = drifting
    for memory in (0, "all", 14, 65):
        with pytest.raises(UnsupportedFormat, match="memory = "):
            certify(tables, machine, memory)
