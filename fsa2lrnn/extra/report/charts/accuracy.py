"""Accuracy over the length of words, with intervals."""

from __future__ import annotations

from fsa2lrnn.display.markup import Markup, line, picture, tag, text
from fsa2lrnn.extra.report.charts.scales import Scale, linear, logarithmic, short
from fsa2lrnn.extra.report.facts import KINDS, ReportFacts

PROTOCOLS = {"whole_word": "every output of the word right", "last_position": "last output right"}
_WIDTH, _HEIGHT = 480, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 468, 14, 206
_APART = 5.0  # pixels that kinds stand apart where they would hide each other
_TICKS = (0, 0.25, 0.5, 0.75, 1)


def accuracy(facts: ReportFacts, protocol: str) -> Markup:
    """A line a model; a kind has a colour, a dash and a mark."""
    lengths = sorted({found["length"] for model in facts.models for found in model.accuracy})
    x = logarithmic(min(lengths), max(lengths), _LEFT + 22, _RIGHT - 22)
    y = linear(0, 1, _BOTTOM, _TOP)
    drawn = [_grid(tick, y(tick)) for tick in _TICKS]
    for length in lengths:
        drawn += [
            line(x(length), _BOTTOM, x(length), _BOTTOM + 4, "axis"),
            text(x(length), _BOTTOM + 17, short(length)),
        ]
    drawn.append(text((_LEFT + _RIGHT) / 2, _HEIGHT - 8, "letters in the word", class_="label faint"))
    for kind in reversed(KINDS):
        shift = (KINDS.index(kind) - 1) * _APART
        for model in facts.models:
            if model.kind == kind and model.accuracy:
                values = [(found["length"], found[protocol]) for found in model.accuracy]
                places = [(x(length) + shift, value) for length, value in values]
                drawn.append(_series(kind, model.name, [(px, y(v["accuracy"]), v) for px, v in places], y))
    return picture(_WIDTH, _HEIGHT, f"Accuracy by length: {PROTOCOLS[protocol]}", *drawn)


def mark(kind: str, x: float, y: float, name: str | None = None) -> Markup:
    """A circle for learned, a diamond for repaired, a square for constructed models."""
    title = tag("title", name) if name else None
    if kind == "learned":
        return tag("circle", title, cx=x, cy=y, r=3.6, class_=f"mark {kind}")
    if kind == "repaired":
        return tag("path", title, d=f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z", class_=f"mark {kind}")
    return tag("rect", title, x=x - 3.6, y=y - 3.6, width=7.2, height=7.2, class_=f"mark {kind}")


def _grid(tick: float, y: float) -> Markup:
    return tag("g", line(_LEFT, y, _RIGHT, y, "grid"), text(_LEFT - 8, y + 4, f"{tick:g}", anchor="end"))


def _series(kind: str, name: str, places: list[tuple[float, float, dict]], y: Scale) -> Markup:
    path = " ".join(f"{'M' if i == 0 else 'L'}{px:.1f} {py:.1f}" for i, (px, py, _) in enumerate(places))
    drawn = [tag("path", d=path, class_=f"curve {kind}")]
    for px, py, value in places:
        low, high = value["interval"]
        said = f"{name}: {value['accuracy']:.4f}, 95 % interval {low:.4f} to {high:.4f}"
        drawn += [line(px, y(low), px, y(high), f"whisker {kind}"), mark(kind, px, py, said)]
    return tag("g", *drawn)
