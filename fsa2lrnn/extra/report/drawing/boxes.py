"""Boxes in rows, the first row at the bottom, with arrows from row to row: which part reads which."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import networkx as nx
import numpy as np

from fsa2lrnn.display.markup import Markup, picture, standing_alone, tag, text
from fsa2lrnn.extra.report.drawing.automaton import curve_with_head
from fsa2lrnn.extra.report.drawing.geometry import Edge
from fsa2lrnn.extra.report.drawing.layout import ordered
from fsa2lrnn.extra.report.drawing.letters import width

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
    # An arrow that passes a row takes a place in it, as a node that has no box.
    graph, row_of = nx.DiGraph(), dict(enumerate(rows))
    graph.add_nodes_from(row_of)
    routes = list[list[int]]()
    for a, b in arrows:
        passed = {len(row_of) + i: row for i, row in enumerate(range(rows[a] + 1, rows[b]))}
        row_of |= passed
        routes.append([a, *passed, b])
        nx.add_path(graph, routes[-1])
    n_rows, place = max(rows) + 1, dict[int, np.ndarray]()
    for row, nodes in enumerate(ordered([[q for q in row_of if row_of[q] == r] for r in range(n_rows)], graph)):
        sizes = np.array([wide + _GAP if q < len(rows) else _GAP for q in nodes])
        y = 14 + high / 2 + (n_rows - 1 - row) * (high + _BETWEEN)
        across = np.cumsum(sizes) - sizes / 2 - sizes.sum() / 2
        place |= {q: np.array([x, y]) for q, x in zip(nodes, across, strict=True)}
    left = min(x for x, _ in place.values()) - wide / 2 - _LEFT
    place = {q: at - (left, 0) for q, at in place.items()}
    drawn: list[Markup] = []
    for route in routes:
        drawn += _arrow(np.stack([place[q] for q in route]), high)
    for row in range(n_rows):
        y = place[rows.index(row)][1] + 4
        drawn.append(text(8, y, f"layer {row + 1}", anchor="start", class_="label faint"))
    for q, box in enumerate(lines):
        drawn.append(_box(place[q], box, wide, high, q in marked))
    size = max(x for x, _ in place.values()) + wide / 2 + 14, n_rows * (high + _BETWEEN) - _BETWEEN + 28
    return standing_alone(picture(*size, title, *drawn, class_="automaton"), size)


def _box(at: np.ndarray, lines: Sequence[str], wide: float, high: float, is_marked: bool) -> Markup:
    x, y = at.tolist()
    frame = tag("rect", x=x - wide / 2, y=y - high / 2, width=wide, height=high, rx=7,
                class_="node" if is_marked else "node plain")  # fmt: skip
    first = y - (len(lines) - 1) * _LINE / 2 + 4
    written = [
        text(x, first + i * _LINE, line, class_="label" if i == 0 else "label faint") for i, line in enumerate(lines)
    ]
    return tag("g", frame, *written)


def _arrow(points: np.ndarray, high: float) -> list[Markup]:
    points[0, 1] -= high / 2
    points[-1, 1] += high / 2 + 5
    curve = [points[:1]]
    for a, b in pairwise(points):
        reach = np.array([0, (a[1] - b[1]) * 0.45])
        curve.append(np.stack([a - reach, b + reach, b]))
    return curve_with_head(np.concatenate(curve))
