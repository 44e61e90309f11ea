"""The oracle: no claim exceeds the exact network, and sets that are too small show."""

from dataclasses import replace

import pytest

from fsa2lrnn.checker.steps import Steps
from verify.oracle.examine import examine, examine_model
from verify.oracle.models import drawn


def wrong(counts):
    return {what: count for what, count in counts.items() if what.startswith("wrong") and count}


def test_claims_on_small_models_are_those_of_the_exact_network():
    found = examine(42)
    assert found["certified by sets"] == 1
    assert found["exact margins compared"] > 1_000
    assert wrong(found) == {}


def test_radii_that_are_too_small_are_seen_though_search_and_check_agree(monkeypatch):
    after = Steps.after

    def smaller(self, *given):
        sets = after(self, *given)
        return replace(sets, radius=0.05 * sets.radius)

    monkeypatch.setattr(Steps, "after", smaller)
    found = wrong(examine_model(*drawn(42), 42, ("auto",)))
    assert found.keys() >= {"wrong: outputs", "wrong: exact state outside of a set"}


@pytest.mark.slow
def test_forty_models():
    assert [seed for seed in range(40) if wrong(examine(seed))] == []
