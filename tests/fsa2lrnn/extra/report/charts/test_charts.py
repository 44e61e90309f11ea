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


def bars(drawn):
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*class="(proved|unknown|fails)"', drawn)
    return [(name, float(x), float(x) + float(width)) for x, _, width, name in found]


def test_bars_cover_rows_and_reach_the_end(facts):
    drawn = horizon(replace(facts, models=facts.models[:1]))
    pieces = sorted(bars(drawn), key=lambda bar: bar[1])
    assert [name for name, *_ in pieces] == ["proved", "unknown", "fails"]
    assert abs(pieces[0][2] - pieces[1][1]) < 0.02
    assert abs(pieces[1][2] - pieces[2][1]) < 0.02
    assert (pieces[0][1], pieces[-1][2]) == (170, 950)
    assert "fails at 3" in drawn
    assert "≤ 2" in drawn
    proof = "26 joint states closed, bit for bit, " * 9
    drawn = horizon(replace(facts, models=[replace(facts.models[2], proof=proof)]))
    assert bars(drawn)[-1] == ("proved", 170, 950)
    assert re.findall(r'class="label on-proved">([^<]*)<', drawn) == ["proved on all words"]
    assert f"({proof})</title>" in drawn


@pytest.mark.parametrize("name", ["even5/seed-0: repaired", "a/very/long/path/" * 5 + ": dyadic"])
def test_bars_leave_room_for_names(facts, name):
    drawn = horizon(replace(facts, models=[replace(facts.models[2], name=name)]))
    (shown,) = re.findall(r'class="label name">([^<]*)<', drawn)
    (bar,) = bars(drawn)
    assert name.endswith(shown.removeprefix("…"))
    assert 24 + 7 * len(shown) < bar[1] < 400
    assert bar[2] == 950


def test_scales_grow_and_names_fit_narrow_paper(facts):
    learned = facts.models[0]
    far = Counterexample(["a"] * 40_000, ["0"] * 40_000, ["0"] * 39_999 + ["1"])
    drawn = horizon(replace(facts, models=[replace(learned, failure=far), replace(learned, name="x", failure=None)]))
    assert ">100k<" in drawn
    assert [name for name, *_ in bars(drawn)] == ["unknown", "proved", "fails", "unknown", "proved"]
    untouched = replace(learned, proved=None, failure=None)
    assert [name for name, *_ in bars(horizon(replace(facts, models=[untouched])))] == ["unknown"]
    drawn = horizon(facts, is_narrow=True)
    assert 'viewBox="0 0 400' in drawn
    tops = [float(y) for y in re.findall(r'<rect x="4" y="([\d.]+)"[^>]*class="proved"', drawn)]
    names = [float(y) for y in re.findall(r'y="([\d.]+)" text-anchor="start" class="label name"', drawn)]
    assert len(names) == len(tops) == 3
    assert all(name < top for name, top in zip(names, tops, strict=True))
    assert max(end for _, _, end in bars(drawn)) == 396
    assert [linear(2, 4, 10, 30)(x) for x in (2, 3, 4)] == [10, 20, 30]
    assert linear(2, 2, 10, 30)(7) == 20
    assert [logarithmic(1, 100, 0, 2)(x) for x in (1, 10, 100)] == pytest.approx([0, 1, 2])
    assert [symmetric(x) for x in (-1, -0.1, 0, 1e-5, -1e-6, 0.01, 1)] == pytest.approx([-5, -4, 0, 0, 0, 3, 5])
    place = fit([(2.0, 0.0), (0.0, -1.0)], 100, 10)
    assert place(2, 0) == pytest.approx((90, 50))
    assert place(0, -1) == pytest.approx((50, 70))
    assert fit([], 100, 10)(0, 0) == (50, 50)
