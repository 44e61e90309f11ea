"""Charts of a page, as SVG and as bars."""

import re
from dataclasses import replace

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.report.charts import LEVELS, blocks, change, eigenvalues, horizon, largest, strip
from fsa2lrnn.extra.report.page import build
from fsa2lrnn.verdicts import Counterexample


def drawing(facts, title):
    """The first drawing of a page whose title begins like that."""
    return re.search(rf'<svg [^>]*aria-label="{title}.*?</svg>', build(facts), re.DOTALL)[0]


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
    repaired = replace(facts, models=facts.models[2:])  # eigenvalues ±1 of the first head, ±i of the second, idle
    drawn = drawing(repaired, "Eigenvalues")
    unit = float(re.search(r'r="([\d.]+)" class="unit"', drawn)[1])
    dots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="3.4" class="dot (\w+)"', drawn)
    assert sorted({round((float(x) - 140) / unit, 2) for x, _, kind in dots if kind == "constructed"}) == [-1, 1]
    assert sorted({round((float(y) - 140) / unit, 2) for _, y, kind in dots if kind == "idle"}) == [-1, 1]
    assert len(dots) == 8
    assert "letter &lt;b a=&#34;1&#34;&gt;&amp;, head 1" in drawn
    tick = r'<line x1="([\d.]+)"[^>]*class="tick (?:learned|constructed)"'
    places = [{float(x) for x in re.findall(tick, drawing(one, "Eigenvalues"))} for one in (facts, repaired)]
    (learned,), (constructed,) = places
    assert constructed - learned > 100
    assert constructed == pytest.approx(18 + 244 * 5 / 9, abs=0.01)
    with pytest.raises(UnsupportedFormat, match="is not known from within"):
        eigenvalues(replace(facts.models[0], inside=None))
    assert [9 * strip(x) for x in (0, 0.9, 1, 1 + 1e-5, 1 - 1e-6, 1.01)] == pytest.approx([0, 1, 5, 5, 5, 8])


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
