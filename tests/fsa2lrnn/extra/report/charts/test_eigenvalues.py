import re
from dataclasses import replace

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.report.charts.blocks import eigenvalues


def test_dots_lie_where_the_numbers_are(facts):
    drawn = eigenvalues(facts.models[1], ["a", "b"])  # eigenvalues ±1 of the first head, ±i of the second, idle
    centre, unit = 140, float(re.search(r'r="([\d.]+)" class="unit"', drawn)[1])
    dots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="3.4" class="dot (\w+)"', drawn)
    assert sorted({round((float(x) - centre) / unit, 2) for x, _, kind in dots if kind == "repaired"}) == [-1, 1]
    assert sorted({round((float(y) - centre) / unit, 2) for _, y, kind in dots if kind == "idle"}) == [-1, 1]
    assert len(dots) == 8
    assert "letter b, head 2" in drawn


def test_ticks_tell_moduli_near_one_apart(facts):
    places = [
        {float(x) for x in re.findall(r'<line x1="([\d.]+)"[^>]*class="tick (?:learned|repaired)"', drawn)}
        for drawn in (eigenvalues(model, ["a", "b"]) for model in facts.models[:2])
    ]
    (learned,), (repaired,) = places
    assert repaired - learned > 100
    assert repaired == pytest.approx(18 + (280 - 36) * 5 / 9, abs=0.01)


def test_a_model_that_is_not_known_from_within_is_refused(facts):
    with pytest.raises(UnsupportedFormat, match="is not known from within"):
        eigenvalues(replace(facts.models[0], inside=None), ["a", "b"])
