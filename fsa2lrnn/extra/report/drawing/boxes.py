"""Boxes in rows, the first row at the bottom, with arrows from row to row: which part reads which."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from fsa2lrnn.display.markup import Markup, tag
from fsa2lrnn.display.svg import picture, standing_alone, text
from fsa2lrnn.extra.report.drawing.curves import Point, head
from fsa2lrnn.extra.report.drawing.labels import width
from fsa2lrnn.extra.report.drawing.ranks import Edge, rank

_LINE, _PAD, _GAP, _BETWEEN, _LEFT = 16.0, 12.0, 26.0, 46.0, 64.0


def boxes(
    title: str, lines: Sequence[Sequence[str]], rows: Sequence[int], arrows: Collection[Edge], marked: Collection[int]
) -> str:
    """Return an SVG file of boxes and arrows.

    Args:
        title: the text for screen readers.
        lines: the text of each box.
        rows: the row of each box, from 0; arrows lead to higher ones.
        arrows: pairs of boxes.
        marked: the highlighted boxes.
    """
    wide = max(max(map(width, box)) for box in lines) + 2 * _PAD
    high = max(map(len, lines)) * _LINE + 2 * _PAD - 4
    ranked = rank(list(rows), list(arrows), wide + _GAP, 18.0)
    n_rows = len(ranked.columns)
    left = min(ranked.height[i] for i in range(len(lines))) - wide / 2
    left = min(left, *(ranked.height[i] for column in ranked.columns for i in column)) - _LEFT
    place = {
        node: (ranked.height[node] - left, 14 + high / 2 + (n_rows - 1 - c) * (high + _BETWEEN))
        for c, column in enumerate(ranked.columns)
        for node in column
    }
    drawn: list[Markup] = []
    for a, b in arrows:
        drawn += _arrow([place[a], *(place[node] for node in ranked.routes[a, b]), place[b]], high)
    for c in range(n_rows):
        y = 14 + high / 2 + (n_rows - 1 - c) * (high + _BETWEEN)
        drawn.append(text(8, y + 4, f"layer {c + 1}", anchor="start", class_="label faint"))
    for i, box in enumerate(lines):
        drawn.append(_box(place[i], box, wide, high, i in marked))
    size = max(x for x, _ in place.values()) + wide / 2 + 14, n_rows * (high + _BETWEEN) - _BETWEEN + 28
    return standing_alone(picture(*size, title, *drawn, class_="automaton"), size)


def _box(at: Point, lines: Sequence[str], wide: float, high: float, is_marked: bool) -> Markup:
    x, y = at
    frame = tag("rect", x=x - wide / 2, y=y - high / 2, width=wide, height=high, rx=7,
                class_="node" if is_marked else "node plain")  # fmt: skip
    first = y - (len(lines) - 1) * _LINE / 2 + 4
    written = [
        text(x, first + i * _LINE, line, class_="label" if i == 0 else "label faint") for i, line in enumerate(lines)
    ]
    return tag("g", frame, *written)


def _arrow(points: list[Point], high: float) -> list[Markup]:
    (x0, y0), (x1, y1) = points[0], points[-1]
    points = [(x0, y0 - high / 2), *points[1:-1], (x1, y1 + high / 2 + 5)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    last = points[0]
    for (xa, ya), (xb, yb) in pairwise(points):
        reach = (ya - yb) * 0.45
        last = (xb, yb + reach)
        path += f"C{xa:.1f} {ya - reach:.1f} {xb:.1f} {yb + reach:.1f} {xb:.1f} {yb:.1f}"
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head((points[0], last, last, points[-1])))
    return [tag("path", d=path, class_="edge"), tag("polygon", points=corners, class_="arrowhead")]
