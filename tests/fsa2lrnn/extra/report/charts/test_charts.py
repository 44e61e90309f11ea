"""Charts as SVG."""

import re
from dataclasses import replace

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.report.charts.blocks import LEVELS, blocks, change, eigenvalues, geometry, hue, largest
from fsa2lrnn.extra.report.charts.horizon import accuracy, fit, horizon, linear, logarithmic, mark, symmetric
from fsa2lrnn.verdicts import Counterexample


def test_marks_differ_in_place_and_shape(facts):
    drawn = accuracy(facts, "whole_word")
    assert [len(re.findall(rf'class="mark {kind}"', drawn)) for kind in ("learned", "repaired", "constructed")] == [
        2
    ] * 3
    (low,) = re.findall(r'cy="([\d.]+)"[^>]*class="mark learned"><title>[^<]*: 0.5000', drawn)
    assert float(low) == pytest.approx((14 + 206) / 2)
    assert "&lt;b a=" in drawn
    assert "<b" not in drawn.replace("&lt;b", "")
    assert len({mark(kind, 1, 2).split()[0] for kind in ("learned", "repaired", "constructed")}) == 3


def test_signs_changes_and_zeros(facts):
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
    found = change(*facts.models[:2])
    assert largest(found) == pytest.approx(0.1)
    assert change(facts.models[0], facts.models[0]) is not None
    single = replace(facts.models[1].inside, blocks=[[[[1.0]]]] * 2)
    assert change(facts.models[0], replace(facts.models[1], inside=single)) is None
    none = replace(facts.models[0], inside=replace(facts.models[0].inside, blocks=[[[[0.0]]]]))
    assert largest(none) == 1
    assert 'class="heat' not in blocks(none, ["a"])


def test_dots_and_ticks_of_eigenvalues(facts):
    drawn = eigenvalues(facts.models[1], ["a", "b"])  # eigenvalues ±1 of the first head, ±i of the second, idle
    centre, unit = 140, float(re.search(r'r="([\d.]+)" class="unit"', drawn)[1])
    dots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="3.4" class="dot (\w+)"', drawn)
    assert sorted({round((float(x) - centre) / unit, 2) for x, _, kind in dots if kind == "repaired"}) == [-1, 1]
    assert sorted({round((float(y) - centre) / unit, 2) for _, y, kind in dots if kind == "idle"}) == [-1, 1]
    assert len(dots) == 8
    assert "letter b, head 2" in drawn
    places = [
        {float(x) for x in re.findall(r'<line x1="([\d.]+)"[^>]*class="tick (?:learned|repaired)"', drawn)}
        for drawn in (eigenvalues(model, ["a", "b"]) for model in facts.models[:2])
    ]
    (learned,), (repaired,) = places
    assert repaired - learned > 100
    assert repaired == pytest.approx(18 + (280 - 36) * 5 / 9, abs=0.01)
    with pytest.raises(UnsupportedFormat, match="is not known from within"):
        eigenvalues(replace(facts.models[0], inside=None), ["a", "b"])


def test_crosses_names_and_hues(facts):
    drawn = geometry(facts.models[0], facts.machine)
    assert len(re.findall('class="state near"', drawn)) == 2
    assert len(re.findall('class="state far"', drawn)) == 2
    assert re.findall(r'class="label halo">([^<]*)<', drawn) == ["1", "2"]
    first, second = (float(x) for x in re.findall(r'cx="([\d.]+)"', drawn))
    assert first > 140 > second
    assert len({hue(state, 30) for state in range(30)}) == 30


def bars(facts):
    ticks, found = horizon(facts)
    assert [place for _, place in ticks] == sorted(place for _, place in ticks)
    for pieces in found.values():  # a bar is whole
        assert [piece.begin for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
        assert pieces[-1].end == 100
    return ticks, [(model.name, [(p.kind, p.label) for p in found[model.name]]) for model in facts.models]


def test_bars_say_what_is_proved_unknown_and_wrong(facts):
    learned, repaired, _ = facts.models
    ticks, found = bars(facts)
    whole = [("proved", "proved on all words")]
    assert [text for text, _ in ticks] == ["1", "10", "100", "all words"]
    assert found == [
        (learned.name, [("proved", "≤ 2"), ("unknown", ""), ("fails", "fails at 3")]),
        ("repaired", whole),
        ("constructed", whole),
    ]
    far = Counterexample(["a"] * 40_000, ["0"] * 40_000, ["0"] * 39_999 + ["1"])
    fails, none = replace(learned, failure=far, proved=None), replace(learned, name="x", proved=None, failure=None)
    ticks, found = bars(replace(facts, models=[fails, none]))
    assert [text for text, _ in ticks] == ["1", "10", "100", "1k", "10k", "all words"]
    assert [pieces for _, pieces in found] == [[("unknown", ""), ("fails", "fails at 40,000")], [("unknown", "")]]
    assert horizon(facts)[1]["repaired"][0].said == f"proved on all words ({repaired.proof})"


def test_scales_grow():
    assert [linear(2, 4, 10, 30)(x) for x in (2, 3, 4)] == [10, 20, 30]
    assert linear(2, 2, 10, 30)(7) == 20
    assert [logarithmic(1, 100, 0, 2)(x) for x in (1, 10, 100)] == pytest.approx([0, 1, 2])
    assert [symmetric(x) for x in (-1, -0.1, 0, 1e-5, -1e-6, 0.01, 1)] == pytest.approx([-5, -4, 0, 0, 0, 3, 5])
    place = fit([(2.0, 0.0), (0.0, -1.0)], 100, 10)
    assert place(2, 0) == pytest.approx((90, 50))
    assert place(0, -1) == pytest.approx((50, 70))
    assert fit([], 100, 10)(0, 0) == (50, 50)
