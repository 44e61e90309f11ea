"""How long each model is right: proved, unknown, known to fail; on a logarithmic scale that ends in "all words"."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fsa2lrnn.display.markup import Markup, line, picture, tag, text
from fsa2lrnn.extra.report.charts.accuracy import mark
from fsa2lrnn.extra.report.charts.scales import Scale, logarithmic, short
from fsa2lrnn.extra.report.facts import Model, ReportFacts

_LEFT, _NAME = 170, 24  # where the scale begins at the least, and the names
_LETTER = 7.5  # the width of one of their letters, a generous mean


@dataclass(frozen=True)
class _Paper:
    """Where things stand: the scale ends at `right`, the bar that stands for all words at `end`; names are cut to
    `longest` letters, their ends shown, which tell repairs apart; `above` is room for them over their bars."""

    width: int
    row: int
    right: int
    end: int
    longest: int
    above: int
    hatch: str


_WIDE = _Paper(960, 30, 850, 950, 40, 0, "hatch")
_NARROW = _Paper(400, 48, 306, 396, 44, 20, "hatch-narrow")
_TOP = 30


def horizon(facts: ReportFacts, is_narrow: bool = False) -> Markup:
    """A bar a model; on narrow paper, a phone's, its name stands above it."""
    paper = _NARROW if is_narrow else _WIDE
    known = [n for model in facts.models for n in (model.proved, _failure(model)) if n]
    high = 10 ** max(3, math.ceil(math.log10(max(known, default=1)) + 0.25))
    names = [_cut(model.name, paper.longest) for model in facts.models]
    left = 4.0 if is_narrow else max(_LEFT, _NAME + _LETTER * max(map(len, names), default=0) + 8)
    x = logarithmic(1, high, left, paper.right)
    bottom = _TOP + paper.row * len(facts.models)
    drawn = [_hatching(paper.hatch)]
    decades = round(math.log10(high))
    for k in range(decades + 1):
        place = x(10**k)
        drawn.append(line(place, _TOP - 6, place, bottom, "grid"))
        if not is_narrow or decades < 5 or k % 2 == 0:
            drawn.append(text(place, _TOP - 12, short(10**k), anchor="start" if is_narrow and k == 0 else "middle"))
    drawn += [
        text((paper.right + paper.end) / 2, _TOP - 12, "all words"),
        line(paper.right, _TOP - 6, paper.right, bottom, "grid strong"),
    ]
    for i, (model, name) in enumerate(zip(facts.models, names, strict=True)):
        top = _TOP + i * paper.row + 5
        drawn += [mark(model.kind, 10, top + 10), text(_NAME, top + 14, name, anchor="start", class_="label name")]
        drawn += _bar(model, top + paper.above, left, x, paper)
    drawn.append(text(left, bottom + 18, "letters in the word", anchor="start", class_="label faint"))
    said = "Up to which length each model is proved right, and where it fails"
    return picture(paper.width, bottom + 26, said, *drawn)


def _cut(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"…{name[1 - longest :]}"


def _bar(model: Model, top: float, left: float, x: Scale, paper: _Paper) -> list[Markup]:
    def piece(begin: float, end: float, class_: str, said: str) -> Markup:
        width = max(end - begin, 0.0)
        style = f"fill:url(#{paper.hatch})" if class_ == "unknown" else None
        return tag("rect", tag("title", said), x=begin, y=top, width=width, height=20, rx=3, class_=class_, style=style)

    if model.proof is not None:
        said = f"{model.name}: proved on all words ({model.proof})"
        return [
            piece(left, paper.end, "proved", said),
            text(left + 8, top + 14, "proved on all words", anchor="start", class_="label on-proved"),
        ]
    proved = x(max(model.proved or 1, 1))
    failure = _failure(model)
    until = x(failure) if failure else paper.end
    drawn = [piece(proved, until, "unknown", f"{model.name}: nothing is known here")]
    if model.proved:
        drawn.append(piece(left, proved, "proved", f"{model.name}: proved up to {model.proved:,} letters"))
        wide = proved - left > 90
        drawn.append(
            text(proved - 8 if wide else proved + 6, top + 14, f"≤ {model.proved:,}", anchor="end" if wide else "start",
                 class_="label on-proved" if wide else "label")
        )  # fmt: skip
    if failure:
        drawn.append(piece(until, paper.end, "fails", f"{model.name}: fails on a word of {failure:,} letters"))
        drawn.append(text(until + 8, top + 14, f"fails at {failure:,}", anchor="start", class_="label on-fails"))
    return drawn


def _failure(model: Model) -> int | None:
    return model.failure.position if model.failure else None


def _hatching(name: str) -> Markup:
    stripes = tag("path", d="M-2 2l4 -4M0 8l8 -8M6 10l4 -4", class_="stripes")
    pattern = tag("pattern", stripes, id=name, width=8, height=8, patternUnits="userSpaceOnUse")
    return tag("defs", pattern)
