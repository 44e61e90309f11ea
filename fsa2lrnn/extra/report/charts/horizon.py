"""Charts over the length of words: the length up to which each model is correct, and its accuracy with intervals.

The length is on a logarithmic scale that ends in "all words".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fsa2lrnn.display.markup import Markup, line, picture, tag, text
from fsa2lrnn.extra.report.facts import KINDS, Model, ReportFacts

_FOR_EVER = 12  # % of the width of a bar that stands for all longer words


class Bar(NamedTuple):
    """A part of a model's bar, from `begin` to `end` in % of its width; `said` is shown by hovering."""

    kind: str
    begin: float
    end: float
    label: str
    said: str


def horizon(facts: ReportFacts) -> tuple[list[tuple[str, float]], dict[str, list[Bar]]]:
    """Return the ticks of an axis of lengths, text and place in %, and the bar of each model by name."""
    lengths = [n for model in facts.models for n in (model.proved, _failure(model)) if n]
    decades = max(3, math.ceil(math.log10(max(lengths, default=1)) + 0.25))
    x = logarithmic(1, 10**decades, 0, 100 - _FOR_EVER)
    ticks = [(short(10**k), x(10**k)) for k in range(decades)]
    ticks.append(("all words", 100))
    return ticks, {model.name: _bar(model, x) for model in facts.models}


def _bar(model: Model, x: Scale) -> list[Bar]:
    if model.proof is not None:
        return [Bar("proved", 0, 100, "proved on all words", f"proved on all words ({model.proof})")]
    proved, failure = model.proved or 0, _failure(model)
    end, until = x(max(proved, 1)), x(failure) if failure else 100.0
    bars = [Bar("unknown", end, until, "", "nothing is known here")]
    if proved:
        bars.insert(0, Bar("proved", 0, end, f"≤ {proved:,}", f"proved up to {proved:,} letters"))
    if failure:
        bars.append(Bar("fails", until, 100, f"fails at {failure:,}", f"fails on a word of {failure:,} letters"))
    return bars


def _failure(model: Model) -> int | None:
    return model.failure.position if model.failure else None


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


def lengths_of(facts: ReportFacts) -> list[int]:
    """Return the lengths at which some model was evaluated."""
    return sorted({line["length"] for model in facts.models for line in model.accuracy})


def accuracy(facts: ReportFacts, protocol: str) -> Markup:
    """Draw one line per model; each kind of model has its own colour, dash and mark."""
    lengths = lengths_of(facts)
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
