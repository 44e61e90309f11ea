import re
from dataclasses import replace

import pytest

from fsa2lrnn.extra.report.charts.blocks import LEVELS, blocks, change, largest


def test_signs_and_sizes_have_classes_of_their_own(facts):
    drawn = blocks(facts.models[0], ["a", "b"])
    below, above = (drawn.count(f'class="heat {sign} l{LEVELS}"') for sign in ("below", "above"))
    assert (below, above) == (1, 1)
    paths = {
        sign: re.search(rf'd="([^"]*)" class="heat {sign} l{LEVELS}"', drawn)[1].count("M")
        for sign in ("above", "below")
    }
    assert paths == {"above": 6, "below": 2}  # of swaps and turns, for two letters
    assert f"l{LEVELS // 2}" in blocks(facts.models[0], ["a", "b"], full=1.8)
    assert drawn.count('class="frame"') == 4


def test_a_change_is_the_difference(facts):
    found = change(*facts.models[:2])
    assert largest(found) == pytest.approx(0.1)
    assert change(facts.models[0], facts.models[0]) is not None
    single = replace(facts.models[1].inside, blocks=[[[[1.0]]]] * 2)
    assert change(facts.models[0], replace(facts.models[1], inside=single)) is None


def test_a_model_of_zeros(facts):
    none = replace(facts.models[0], inside=replace(facts.models[0].inside, blocks=[[[[0.0]]]]))
    assert largest(none) == 1
    assert 'class="heat' not in blocks(none, ["a"])
