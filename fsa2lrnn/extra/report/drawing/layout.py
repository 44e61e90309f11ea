"""Where the states, arrows and labels of an automaton stand: on a circle, or in columns from left to right.

A sink that most arrows would lead to is folded: those arrows are left out, and every letter that is not drawn leads
there. Where arrows are too many for any eye, they pass behind one another, pale and without labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from fsa2lrnn.display.markup import visible
from fsa2lrnn.extra.report.drawing.curves import Box, Curve, Point, along, arc, between, loop, through, widest_gap
from fsa2lrnn.extra.report.drawing.labels import LabelRequest, place, short_list, width
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.drawing.ranks import Edge, columns_of, distances, rank

DRAWN = 60  # states; of more, a drawing shows nothing
_ON_CIRCLE = 12  # states that all lead to one another, up to which they stand on a circle
_FOLDED = 3  # arrows from which a sink is folded
_DENSE = 3.2  # arrows a state, from which columns show none of their labels
_CROWDED = 3.5  # arrows a state, loops too, from which labels stand near where their arrows begin
_FEW = 12  # states up to which circles are large
_MARGIN = 14.0


@dataclass(frozen=True)
class Arrow:
    """All letters from one state to another, with the place of their label if it has one."""

    edge: Edge
    letters: str
    curve: Curve
    label: Point | None


@dataclass(frozen=True)
class DrawingLayout:
    """A drawing's geometry.

    Args:
        size: width and height.
        places: the middle of each state's circle; radius: of all.
        start: the arrow to the start.
        folded: the sink that arrows which are not drawn lead to.
        is_dense: whether arrows are so many that labels keep clear of those of the same state alone, to be shown with
            that state's arrows.
    """

    size: Point
    places: list[Point]
    radius: float
    arrows: list[Arrow]
    start: Curve
    folded: int | None
    is_dense: bool


def lay_out(machine: DrawnMachine) -> DrawingLayout | None:
    """Return the geometry of the drawing, or None for more than `DRAWN` states."""
    if len(machine.states) > DRAWN:
        return None
    rows = tuple(map(tuple, machine.delta))
    return _lay_out(rows, machine.start, tuple(visible(letter, lines=False) for letter in machine.alphabet))


@lru_cache(maxsize=64)
def _lay_out(delta: tuple[tuple[int, ...], ...], start: int, alphabet: tuple[str, ...]) -> DrawingLayout:
    n = len(delta[0])
    given = DrawnMachine([""] * n, list(alphabet), [""] * n, [list(row) for row in delta], start)
    arrows = given.arrows
    folded = _sink(n, arrows, start)
    leads_on = all(then >= 0 for row in delta for then in row)
    drawn = {
        edge: short_list(by, alphabet, names_others=leads_on)
        for edge, by in arrows.items()
        if folded is None or edge[1] != folded
    }
    kept = [q for q in range(n) if q != folded]
    radius = 22.0 if n <= _FEW else 16.0
    plain = [edge for edge in drawn if edge[0] != edge[1]]
    if len(kept) <= _ON_CIRCLE and _leads_everywhere(kept, plain, start):
        places, curves, is_dense = *_circle(n, kept, plain, radius), False
    else:
        is_dense = len(plain) > _DENSE * len(kept) and len(kept) > _FEW
        places, curves = _columns(n, kept, plain, drawn, start, radius, is_dense)
    if folded is not None:
        places[folded] = _aside(places, kept, radius)
    free = {q: _angles(q, curves) for q in kept}
    from_left = [] if len(kept) > 1 and len({x for x, _ in places}) > 1 else [math.pi]
    entry = _entry(places, free[start], start, radius, from_left)
    free[start].append(math.atan2(entry[0][1] - places[start][1], entry[0][0] - places[start][0]))
    loops = {}
    for q in kept:
        if (q, q) in drawn:
            angle = widest_gap(free[q], -math.pi / 2)
            loops[q, q] = loop(places[q], radius, angle)
    curves |= loops
    labels = _labels(drawn, curves, places, radius, entry, is_dense)
    found = [Arrow(edge, drawn[edge], curves[edge], labels.get(edge)) for edge in drawn]
    return _shifted(DrawingLayout((0, 0), places, radius, found, entry, folded, is_dense))


def _sink(n: int, arrows: dict[Edge, list[int]], start: int) -> int | None:
    leaves = {q for q, then in arrows if q != then}
    into = {q: sum(edge[1] == q != edge[0] for edge in arrows) for q in range(n) if q not in leaves and q != start}
    most = max(into, key=lambda q: (into[q], -q), default=None)
    return most if most is not None and into[most] >= _FOLDED else None


def _leads_everywhere(kept: list[int], edges: list[Edge], start: int) -> bool:
    back = [(then, q) for q, then in edges]
    top = max(kept, default=0) + 1
    return all(
        all(q == start or steps[q] for q in kept)
        for steps in (distances(top, edges, start), distances(top, back, start))
    )


def _circle(n: int, kept: list[int], edges: list[Edge], radius: float) -> tuple[list[Point], dict[Edge, Curve]]:
    order = _round(kept, edges)
    room = 2 * radius + (44 if len(edges) <= 2.5 * len(kept) else 84)
    reach = max(0.0 if len(kept) == 1 else 62.0, len(kept) * room / (2 * math.pi))
    places: list[Point] = [(0.0, 0.0)] * n
    for i, q in enumerate(order):
        turn = 2 * math.pi * i / len(order)
        places[q] = (1.25 * reach * math.sin(turn), -reach * math.cos(turn))
    both = set(edges)
    bend = {True: 0.14, False: 0.05}
    curves = {
        (q, then): arc(places[q], places[then], bend[(then, q) in both], radius, both=(then, q) in both)
        for q, then in edges
    }
    return places, curves


def _round(kept: list[int], edges: list[Edge]) -> list[int]:
    order, n = list(kept), len(kept)

    def length(order: list[int]) -> int:
        at = {q: i for i, q in enumerate(order)}
        gaps = (abs(at[q] - at[then]) for q, then in edges)
        return sum(min(gap, n - gap) for gap in gaps)

    shortest, improved = length(order), True
    while improved:
        improved = False
        for i in range(1, n):
            for j in range(i + 1, n):
                order[i], order[j] = order[j], order[i]
                if (found := length(order)) < shortest:
                    shortest, improved = found, True
                else:
                    order[i], order[j] = order[j], order[i]
    return order


def _columns(
    n: int, kept: list[int], edges: list[Edge], drawn: dict[Edge, str], start: int, radius: float, is_dense: bool
) -> tuple[list[Point], dict[Edge, Curve]]:
    number = {q: i for i, q in enumerate(kept)}
    inner = [(number[q], number[then]) for q, then in edges]
    tallest = max(6, math.ceil(math.sqrt(1.8 * len(kept))))
    column = columns_of(distances(len(kept), inner, number[start]), inner, tallest)
    ranked = rank(column, inner, 2 * radius + 26, None if is_dense else 26.0)
    widest = dict.fromkeys(range(len(ranked.columns)), 0.0)
    for (q, then), text in drawn.items():
        if q != then and not is_dense:
            c, d = sorted((column[number[q]], column[number[then]]))
            widest[c] = max(widest[c], width(text) if d - c <= 1 else 0.0)
    across, at = [], 0.0
    for c in range(len(ranked.columns)):
        across.append(at)
        at += 2 * radius + 46 + (40 if is_dense else widest[c])
    middle = [
        (across[c], ranked.height[node])
        for node, c in sorted((node, c) for c, column in enumerate(ranked.columns) for node in column)
    ]
    places: list[Point] = [(0.0, 0.0)] * n
    for q in kept:
        places[q] = middle[number[q]]
    both, curves = set(edges), {}
    for q, then in edges:
        i, j = number[q], number[then]
        is_mutual = (then, q) in both
        if column[i] == column[j]:
            away = abs(ranked.columns[column[i]].index(i) - ranked.columns[column[j]].index(j))
            curves[q, then] = arc(places[q], places[then], 0.16 if away == 1 else 0.34, radius, is_mutual)
        elif route := ranked.routes[i, j]:
            curves[q, then] = through([places[q], *(middle[node] for node in route), places[then]], radius)
        else:
            curves[q, then] = between(places[q], places[then], radius, 9.0 if is_mutual else 0.0)
    return places, curves


def _aside(places: list[Point], kept: list[int], radius: float) -> Point:
    xs, ys = zip(*(places[q] for q in kept), strict=True)
    return max(xs), max(ys) + 3.2 * radius + 18


def _angles(q: int, curves: dict[Edge, Curve]) -> list[float]:
    found = []
    for edge, curve in curves.items():
        if edge[0] == q != edge[1]:
            found.append(math.atan2(curve[1][1] - curve[0][1], curve[1][0] - curve[0][0]))
        elif edge[1] == q != edge[0]:
            found.append(math.atan2(curve[-2][1] - curve[-1][1], curve[-2][0] - curve[-1][0]))
    return found


def _entry(places: list[Point], angles: list[float], start: int, radius: float, wanted: list[float]) -> Curve:
    x, y = places[start]
    clear = all(abs(math.remainder(angle - math.pi, 2 * math.pi)) > 0.5 for angle in angles)
    angle = math.pi if clear or wanted else widest_gap(angles, math.pi)
    outer, inner = radius + 30, radius + 5
    a = (x + outer * math.cos(angle), y + outer * math.sin(angle))
    b = (x + inner * math.cos(angle), y + inner * math.sin(angle))
    return (a, ((2 * a[0] + b[0]) / 3, (2 * a[1] + b[1]) / 3), ((a[0] + 2 * b[0]) / 3, (a[1] + 2 * b[1]) / 3), b)


def _labels(
    drawn: dict[Edge, str],
    curves: dict[Edge, Curve],
    places: list[Point],
    radius: float,
    entry: Curve,
    is_dense: bool,
) -> dict[Edge, Point]:
    wanted = [LabelRequest(edge, width(text), along(curves[edge])) for edge, text in drawn.items()]
    circles = [(x - radius - 1, y - radius - 1, x + radius + 1, y + radius + 1) for x, y in places]
    ends = [(x, y, x, y) for x, y in along(entry)]
    taken = [*circles, *ends]
    if is_dense:
        alone = [place([label for label in wanted if label.key[0] == q], taken, near=True) for q in range(len(places))]
        return {edge: point for found in alone for edge, point in found.items()}
    return place(wanted, taken, near=len(wanted) > _CROWDED * len(places))


def _shifted(layout: DrawingLayout) -> DrawingLayout:
    boxes: list[Box] = [
        (x - layout.radius, y - layout.radius, x + layout.radius, y + layout.radius) for x, y in layout.places
    ]
    boxes += [(x, y, x, y) for x, y in along(layout.start)]
    for arrow in layout.arrows:
        boxes += [(x, y, x, y) for x, y in along(arrow.curve)]
        if arrow.label is not None:
            (x, y), half = arrow.label, width(arrow.letters) / 2
            boxes.append((x - half, y - 8, x + half, y + 8))
    left, top = min(box[0] for box in boxes) - _MARGIN, min(box[1] for box in boxes) - _MARGIN
    right, bottom = max(box[2] for box in boxes) + _MARGIN, max(box[3] for box in boxes) + _MARGIN

    def move(p: Point) -> Point:
        return p[0] - left, p[1] - top

    arrows = [
        replace(
            arrow,
            curve=tuple(map(move, arrow.curve)),
            label=None if arrow.label is None else move(arrow.label),
        )
        for arrow in layout.arrows
    ]
    return replace(
        layout,
        size=(right - left, bottom - top),
        places=[move(p) for p in layout.places],
        arrows=arrows,
        start=tuple(map(move, layout.start)),
    )
