import re

import pytest

from fsa2lrnn.extra.report.charts.horizon import accuracy, mark


def test_every_value_has_its_mark_where_it_belongs(facts):
    drawn = accuracy(facts, "whole_word")
    assert [len(re.findall(rf'class="mark {kind}"', drawn)) for kind in ("learned", "repaired", "constructed")] == [
        2
    ] * 3
    (low,) = re.findall(r'cy="([\d.]+)"[^>]*class="mark learned"><title>[^<]*: 0.5000', drawn)
    assert float(low) == pytest.approx((14 + 206) / 2)
    assert "&lt;b a=" in drawn
    assert "<b" not in drawn.replace("&lt;b", "")


def test_kinds_differ_in_shape():
    assert len({mark(kind, 1, 2).split()[0] for kind in ("learned", "repaired", "constructed")}) == 3
