"""Charts over the length of words: the length up to which each model is correct, and its accuracy with intervals.

The length is on a logarithmic scale that ends in "all words".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fsa2lrnn.display.markup import Markup, tag
from fsa2lrnn.display.svg import line, picture, text
from fsa2lrnn.extra.report.facts import KINDS, Model, ReportFacts

_LEFT, _NAME = 170, 24  # where the scale begins at the least, and the names
_LETTER = 7.5  # the width of one of their letters, a generous mean


@dataclass(frozen=True)
class _Paper:
    """The geometry of a chart: the scale ends at `right`, the bar of a proof for all words at `end`.

    Names are cut to their last `longest` characters, which distinguish repairs; `above` is the space for them above
    bars.
    """

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
    """Draw one bar per model; with `is_narrow`, for phones, the model's name is above its bar."""
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


Scale = Callable[[float], float]
_DECADES = 5  # of a symmetric logarithm, below 1


def linear(low: float, high: float, left: float, right: float) -> Scale:
    """Return the linear map with low ↦ left and high ↦ right, or the constant map to the middle if low = high."""
    if high == low:
        return lambda _: (left + right) / 2
    return lambda value: left + (value - low) / (high - low) * (right - left)


def logarithmic(low: float, high: float, left: float, right: float) -> Scale:
    """Return the map that is linear in the logarithm, for positive numbers, with low ↦ left and high ↦ right."""
    inner = linear(math.log10(low), math.log10(high), left, right)
    return lambda value: inner(math.log10(value))


def symmetric(value: float) -> float:
    """Return a signed logarithm: −5 at −1, 5 at 1, and 0 for numbers within 10⁻⁵ of 0.

    >>> symmetric(-0.001), symmetric(1e-7)
    (-2.0, 0.0)
    """
    size = abs(value) * 10**_DECADES
    return math.copysign(math.log10(size), value) if size > 1 else 0.0


def fit(
    points: Sequence[tuple[float, float]], size: float, margin: float
) -> Callable[[float, float], tuple[float, float]]:
    """Return the map of points into a square with one scale for both axes, y upwards."""
    reach = max((max(abs(x), abs(y)) for x, y in points), default=1.0) or 1.0
    scale = linear(-reach, reach, margin, size - margin)
    return lambda x, y: (scale(x), size - scale(y))


def short(n: int) -> str:
    """Return a word length as the label of an axis.

    >>> [short(n) for n in (40, 500, 5_000, 50_000, 1_000_000)]
    ['40', '500', '5k', '50k', '1M']
    """
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if n >= size and n % (size // 10) == 0:
            return f"{n / size:g}{letter}"
    return f"{n:,}"


PROTOCOLS = {"whole_word": "every output of the word right", "last_position": "last output right"}
_WIDTH, _HEIGHT = 480, 250
_PLOT_LEFT, _PLOT_RIGHT, _PLOT_TOP, _PLOT_BOTTOM = 46, 468, 14, 206
_APART = 5.0  # pixels between kinds that would hide each other
_TICKS = (0, 0.25, 0.5, 0.75, 1)


def accuracy(facts: ReportFacts, protocol: str) -> Markup:
    """Draw one line per model; each kind of model has its own colour, dash and mark."""
    lengths = sorted({found["length"] for model in facts.models for found in model.accuracy})
    x = logarithmic(min(lengths), max(lengths), _PLOT_LEFT + 22, _PLOT_RIGHT - 22)
    y = linear(0, 1, _PLOT_BOTTOM, _PLOT_TOP)
    drawn = [_grid(tick, y(tick)) for tick in _TICKS]
    for length in lengths:
        drawn += [
            line(x(length), _PLOT_BOTTOM, x(length), _PLOT_BOTTOM + 4, "axis"),
            text(x(length), _PLOT_BOTTOM + 17, short(length)),
        ]
    drawn.append(text((_PLOT_LEFT + _PLOT_RIGHT) / 2, _HEIGHT - 8, "letters in the word", class_="label faint"))
    for kind in reversed(KINDS):
        shift = (KINDS.index(kind) - 1) * _APART
        for model in facts.models:
            if model.kind == kind and model.accuracy:
                values = [(found["length"], found[protocol]) for found in model.accuracy]
                places = [(x(length) + shift, value) for length, value in values]
                drawn.append(_series(kind, model.name, [(px, y(v["accuracy"]), v) for px, v in places], y))
    return picture(_WIDTH, _HEIGHT, f"Accuracy by length: {PROTOCOLS[protocol]}", *drawn)


def mark(kind: str, x: float, y: float, name: str | None = None) -> Markup:
    """Draw a circle for learned, a diamond for repaired, a square for constructed models."""
    title = tag("title", name) if name else None
    if kind == "learned":
        return tag("circle", title, cx=x, cy=y, r=3.6, class_=f"mark {kind}")
    if kind == "repaired":
        return tag("path", title, d=f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z", class_=f"mark {kind}")
    return tag("rect", title, x=x - 3.6, y=y - 3.6, width=7.2, height=7.2, class_=f"mark {kind}")


def _grid(tick: float, y: float) -> Markup:
    return tag("g", line(_PLOT_LEFT, y, _PLOT_RIGHT, y, "grid"), text(_PLOT_LEFT - 8, y + 4, f"{tick:g}", anchor="end"))


def _series(kind: str, name: str, places: list[tuple[float, float, dict]], y: Scale) -> Markup:
    path = " ".join(f"{'M' if i == 0 else 'L'}{px:.1f} {py:.1f}" for i, (px, py, _) in enumerate(places))
    drawn = [tag("path", d=path, class_=f"curve {kind}")]
    for px, py, value in places:
        low, high = value["interval"]
        said = f"{name}: {value['accuracy']:.4f}, 95 % interval {low:.4f} to {high:.4f}"
        drawn += [line(px, y(low), px, y(high), f"whisker {kind}"), mark(kind, px, py, said)]
    return tag("g", *drawn)
