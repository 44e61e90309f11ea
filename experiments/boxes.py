"""Draw boxes in rows, the first row at the bottom, with arrows between rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

import networkx as nx
import numpy as np

from fsa2lrnn.display import Markup
from fsa2lrnn.draw.automaton import ordered
from fsa2lrnn.draw.drawn_machine import width
from fsa2lrnn.draw.geometry import Edge, head
from fsa2lrnn.draw.svg import standing_alone

_LINE, _PAD, _GAP, _BETWEEN, _LEFT = 16.0, 12.0, 26.0, 46.0, 64.0


def boxes(
    title: str, lines: Sequence[Sequence[str]], rows: Sequence[int], arrows: Collection[Edge], marked: Collection[int]
) -> str:
    """Return the text of an SVG file with boxes and arrows.

    Args:
        title: the text for screen readers.
        lines: the lines of text in each box.
        rows: the row of each box, from 0; arrows lead to higher rows.
        arrows: the pairs of box numbers between which arrows lead.
        marked: the numbers of the highlighted boxes.
    """
    wide = max(max(map(width, box)) for box in lines) + 2 * _PAD
    high = max(map(len, lines)) * _LINE + 2 * _PAD - 4
    # An arrow that passes a row gets a place in this row, as a node without a box.
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
    size = math.ceil(max(x for x, _ in place.values()) + wide / 2 + 14), n_rows * (high + _BETWEEN) - _BETWEEN + 28
    drawn = [_arrow(_curve(np.stack([place[q] for q in route]), high)) for route in routes]
    for row in range(n_rows):
        y = place[rows.index(row)][1] + 4
        drawn.append(f'<text x="8" y="{y:g}" text-anchor="start" class="label faint">layer {row + 1}</text>')
    for q, box in enumerate(lines):
        x, y = place[q]
        drawn.append(
            f'<rect x="{x - wide / 2:.2f}" y="{y - high / 2:.2f}" width="{wide:.2f}" height="{high:g}" rx="7" '
            f'class="node{"" if q in marked else " plain"}"></rect>'
        )
        for k, line in enumerate(box):
            at = y - (len(box) - 1) * 8 + 4 + 16 * k
            drawn.append(
                f'<text x="{x:.2f}" y="{at:g}" text-anchor="middle" class="label{" faint" if k else ""}">'
                f"{escape(line)}</text>"
            )
    whole = (
        f'<svg viewBox="0 0 {size[0]:g} {size[1]:g}" role="img" aria-label="{title}" class="automaton" '
        f'style="max-width:{size[0]:g}px">\n<title>{title}</title>\n' + "\n".join(drawn) + "\n</svg>"
    )
    return standing_alone(Markup(whole), size)


def _arrow(points: np.ndarray) -> str:
    path = "".join(f"{'C' if k % 3 == 0 else ' '}{x:.2f} {y:.2f}" for k, (x, y) in enumerate(points[1:]))
    corners = " ".join(f"{x:.2f},{y:.2f}" for x, y in head(points))
    start = f"M{points[0][0]:.2f} {points[0][1]:.2f}"
    return f'<path d="{start}{path}" class="edge"></path>\n<polygon points="{corners}" class="arrowhead"></polygon>'


def _curve(points: np.ndarray, high: float) -> np.ndarray:
    """Return the points of curves from the top of the first box to the bottom of the last, upright in between."""
    half = np.array([0, high / 2])
    stops = [points[0] - half]
    for passed in points[1:-1]:
        stops += [passed + half, passed - half]
    stops.append(points[-1] + half + (0, 5))
    curve = [stops[0][None]]
    for a, b in pairwise(stops):
        reach = np.array([0, (a[1] - b[1]) * 0.45])
        curve.append(np.stack([a - reach, b + reach, b]))
    return np.concatenate(curve)
