"""How long each model is right: proved, unknown, known to fail; on a logarithmic scale that ends in "all words"."""

from __future__ import annotations

import math

from fsa2lrnn.drawing.markup import Markup, line, picture, tag, text
from fsa2lrnn.report.charts.accuracy import mark
from fsa2lrnn.report.charts.scales import Scale, logarithmic, short
from fsa2lrnn.report.facts import Facts, Model

_WIDTH, _ROW, _TOP = 960, 30, 30
_RIGHT, _END = 850, 950  # where the scale ends, and the bar that stands for all words
_LEFT, _NAME = 170, 24  # where the scale begins at the least, and the names
_LETTER = 7.5  # the width of one of their letters, a generous mean
_LONGEST = 40  # letters of a name; of a longer one the end is shown, which tells repairs apart


def horizon(facts: Facts) -> Markup:
    """A bar a model."""
    known = [n for model in facts.models for n in (model.proved, _failure(model)) if n]
    high = 10 ** max(3, math.ceil(math.log10(max(known, default=1)) + 0.25))
    names = [model.name if len(model.name) <= _LONGEST else f"…{model.name[1 - _LONGEST :]}" for model in facts.models]
    left = max(_LEFT, _NAME + _LETTER * max(map(len, names), default=0) + 8)
    x = logarithmic(1, high, left, _RIGHT)
    bottom = _TOP + _ROW * len(facts.models)
    drawn = [_hatching()]
    for tick in [10**k for k in range(round(math.log10(high)) + 1)]:
        drawn += [line(x(tick), _TOP - 6, x(tick), bottom, "grid"), text(x(tick), _TOP - 12, short(tick))]
    drawn += [text((_RIGHT + _END) / 2, _TOP - 12, "all words"), line(_RIGHT, _TOP - 6, _RIGHT, bottom, "grid strong")]
    for i, (model, name) in enumerate(zip(facts.models, names, strict=True)):
        top = _TOP + i * _ROW + 5
        drawn += [mark(model.kind, 10, top + 10), text(_NAME, top + 14, name, anchor="start", class_="label name")]
        drawn += _bar(model, top, left, x)
    drawn.append(text(left, bottom + 18, "letters in the word", anchor="start", class_="label faint"))
    return picture(_WIDTH, bottom + 26, "Up to which length each model is proved right, and where it fails", *drawn)


def _bar(model: Model, top: float, left: float, x: Scale) -> list[Markup]:
    def piece(begin: float, end: float, class_: str, said: str) -> Markup:
        width = max(end - begin, 0.0)
        return tag("rect", tag("title", said), x=begin, y=top, width=width, height=20, rx=3, class_=class_)

    if model.proof is not None:
        said = f"{model.name}: proved on all words ({model.proof})"
        return [
            piece(left, _END, "proved", said),
            text(left + 8, top + 14, "proved on all words", anchor="start", class_="label on-proved"),
        ]
    proved = x(max(model.proved or 1, 1))
    failure = _failure(model)
    until = x(failure) if failure else _END
    drawn = [piece(proved, until, "unknown", f"{model.name}: nothing is known here")]
    if model.proved:
        drawn.append(piece(left, proved, "proved", f"{model.name}: proved up to {model.proved:,} letters"))
        wide = proved - left > 90
        drawn.append(
            text(proved - 8 if wide else proved + 6, top + 14, f"≤ {model.proved:,}", anchor="end" if wide else "start",
                 class_="label on-proved" if wide else "label")
        )  # fmt: skip
    if failure:
        drawn.append(piece(until, _END, "fails", f"{model.name}: fails on a word of {failure:,} letters"))
        drawn.append(text(until + 8, top + 14, f"fails at {failure:,}", anchor="start", class_="label on-fails"))
    return drawn


def _failure(model: Model) -> int | None:
    return model.failure.position if model.failure else None


def _hatching() -> Markup:
    stripes = tag("path", d="M-2 2l4 -4M0 8l8 -8M6 10l4 -4", class_="stripes")
    pattern = tag("pattern", stripes, id="hatch", width=8, height=8, patternUnits="userSpaceOnUse")
    return tag("defs", pattern)
