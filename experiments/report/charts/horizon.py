"""How long each model is right: proved, unknown, known to fail; on a logarithmic scale that ends in "all words"."""

from __future__ import annotations

import math

from experiments.report.charts.accuracy import mark
from experiments.report.charts.scales import logarithmic, short
from experiments.report.facts import Facts, Model
from experiments.report.markup import Markup, line, picture, tag, text

_WIDTH, _ROW, _TOP = 960, 30, 30
_LEFT, _RIGHT, _END = 170, 850, 950  # the scale's ends, and that of the bar that stands for all words


def horizon(facts: Facts) -> Markup:
    """A bar a model."""
    known = [n for model in facts.models for n in (model.proved, _failure(model)) if n]
    high = 10 ** max(3, math.ceil(math.log10(max(known, default=1)) + 0.25))
    x = logarithmic(1, high, _LEFT, _RIGHT)
    bottom = _TOP + _ROW * len(facts.models)
    drawn = [_hatching()]
    for tick in [10**k for k in range(round(math.log10(high)) + 1)]:
        drawn += [line(x(tick), _TOP - 6, x(tick), bottom, "grid"), text(x(tick), _TOP - 12, short(tick))]
    drawn += [text((_RIGHT + _END) / 2, _TOP - 12, "all words"), line(_RIGHT, _TOP - 6, _RIGHT, bottom, "grid strong")]
    for i, model in enumerate(facts.models):
        top = _TOP + i * _ROW + 5
        drawn += [mark(model.kind, 10, top + 10), text(24, top + 14, model.name, anchor="start", class_="label name")]
        drawn += _bar(model, top, x)
    drawn.append(text(_LEFT, bottom + 18, "letters in the word", anchor="start", class_="label faint"))
    return picture(_WIDTH, bottom + 26, "Up to which length each model is proved right, and where it fails", *drawn)


def _bar(model: Model, top: float, x: object) -> list[Markup]:
    def piece(left: float, right: float, class_: str, said: str) -> Markup:
        width = max(right - left, 0.0)
        return tag("rect", tag("title", said), x=left, y=top, width=width, height=20, rx=3, class_=class_)

    if model.proof is not None:
        said = f"{model.name}: proved on all words"
        return [
            piece(_LEFT, _END, "proved", said),
            text(_LEFT + 8, top + 14, f"proved on all words: {model.proof}", anchor="start", class_="label on-proved"),
        ]
    proved = x(max(model.proved or 1, 1))  # type: ignore[operator]
    failure = _failure(model)
    until = x(failure) if failure else _END  # type: ignore[operator]
    drawn = [piece(proved, until, "unknown", f"{model.name}: nothing is known here")]
    if model.proved:
        drawn.append(piece(_LEFT, proved, "proved", f"{model.name}: proved up to {model.proved:,} letters"))
        wide = proved - _LEFT > 90
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
