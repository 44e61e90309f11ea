import re
from dataclasses import replace

import pytest

from fsa2lrnn.extra.report.charts.horizon import horizon
from fsa2lrnn.verdicts import Counterexample


def bars(drawn):
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*class="(proved|unknown|fails)"', drawn)
    return [(name, float(x), float(x) + float(width)) for x, _, width, name in found]


def test_bars_meet_and_cover_the_row(facts):
    drawn = horizon(replace(facts, models=facts.models[:1]))
    pieces = sorted(bars(drawn), key=lambda bar: bar[1])
    assert [name for name, *_ in pieces] == ["proved", "unknown", "fails"]
    assert abs(pieces[0][2] - pieces[1][1]) < 0.02
    assert abs(pieces[1][2] - pieces[2][1]) < 0.02
    assert (pieces[0][1], pieces[-1][2]) == (170, 950)
    assert "fails at 3" in drawn
    assert "≤ 2" in drawn


def test_what_is_proved_for_all_words_reaches_the_end(facts):
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


def test_the_scale_grows_with_what_is_known(facts):
    learned = facts.models[0]
    far = Counterexample(["a"] * 40_000, ["0"] * 40_000, ["0"] * 39_999 + ["1"])
    drawn = horizon(replace(facts, models=[replace(learned, failure=far), replace(learned, name="x", failure=None)]))
    assert ">100k<" in drawn
    assert [name for name, *_ in bars(drawn)] == ["unknown", "proved", "fails", "unknown", "proved"]
    untouched = replace(learned, proved=None, failure=None)
    assert [name for name, *_ in bars(horizon(replace(facts, models=[untouched])))] == ["unknown"]


def test_on_narrow_paper_names_stand_above_their_bars(facts):
    drawn = horizon(facts, is_narrow=True)
    assert 'viewBox="0 0 400' in drawn
    tops = [float(y) for y in re.findall(r'<rect x="4" y="([\d.]+)"[^>]*class="proved"', drawn)]
    names = [float(y) for y in re.findall(r'y="([\d.]+)" text-anchor="start" class="label name"', drawn)]
    assert len(names) == len(tops) == 3
    assert all(name < top for name, top in zip(names, tops, strict=True))
    assert max(end for _, _, end in bars(drawn)) == 396
