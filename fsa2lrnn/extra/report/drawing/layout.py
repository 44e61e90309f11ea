"""Where the states, arrows and labels of an automaton stand: on a circle, or in columns from left to right.

A sink that most arrows would lead to is folded: those arrows are left out, and every letter that is not drawn leads
there. Where arrows are too many for any eye, they pass behind one another, pale and without labels.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fsa2lrnn.display.markup import visible
from fsa2lrnn.extra.report.drawing.curves import Box, Curve, Point, along, arc, between, loop, through, widest_gap
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.drawing.ranks import Edge, columns_of, distances, rank

_RUN = 4  # letters in a row from which only the first and the last are written
_WIDE = 11.5  # pixels of a wide character in a label, and of any other
_NARROW = 6.9


def short_list(given: Sequence[int], alphabet: Sequence[str], most: int = 16, names_others: bool = True) -> str:
    """Return letters by number, in order, as text that is cut after `most` characters.

    Many letters are described by the remaining ones, unless `names_others` is False.

    >>> digits = [*"0123456789", "+"]
    >>> short_list(range(10), digits), short_list([1, 2, 10], digits), short_list(range(11), digits)
    ('0–9', '1, 2, +', 'any')
    >>> short_list([0, 1, 2, 3, 4, 6, 7, 8, 9, 10], digits), short_list([0], ["a long name of a letter"])
    ('not 5', 'a long name of …')

    One letter alone is called by its name, however short the others' are.

    >>> short_list([0], ["tick tock", "-"])
    'tick tock'
    """
    if names_others and len(given) == len(alphabet) > 2:
        return "any"
    rest = sorted(set(range(len(alphabet))) - set(given))
    text = ", ".join(_runs(sorted(given), alphabet))
    others = "not " + ", ".join(alphabet[a] for a in rest)
    if names_others and len(given) > 1 and 0 < len(rest) <= 2 and len(others) < len(text):
        text = others
    return text if len(text) <= most else f"{text[: most - 1]}…"


def width(text: str) -> float:
    """Return an estimate of the width of a label in pixels, generous because fonts differ."""
    return sum(_WIDE if unicodedata.east_asian_width(c) in "WF" else _NARROW for c in text) + 2


def _runs(given: list[int], alphabet: Sequence[str]) -> list[str]:
    runs: list[list[int]] = []
    for a in given:
        if runs and _follows(alphabet[runs[-1][-1]], alphabet[a]):
            runs[-1].append(a)
        else:
            runs.append([a])
    texts: list[str] = []
    for run in runs:
        names = [alphabet[a] for a in run]
        texts += [f"{names[0]}–{names[-1]}"] if len(run) >= _RUN else names
    return texts


def _follows(a: str, b: str) -> bool:
    return len(a) == len(b) == 1 and ord(b) == ord(a) + 1 and a.isalnum() and b.isalnum()


HEIGHT = 14.0  # of a line of text
_SHARES = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72, 0.22, 0.78, 0.15, 0.85)  # of the way along the arrow, by preference
_NEAR = (0.3, 0.26, 0.34, 0.22, 0.38, 0.42, 0.5, 0.58, 0.66, 0.15, 0.74)
_GAPS = (3.0, 7.0, 12.0)  # between the arrow and its label
_STEP = 3.0  # pixels between the points of arrows that labels avoid
_CROSSED = 25.0  # cost of a label on an arrow: more than that of any other place along its own
_COVERED = 1.0  # cost of each point of arrows below the label
_FURTHER = 4.0  # cost of each wider gap


class LabelRequest(NamedTuple):
    """A label to be placed: its key, its width, and points along its arrow."""

    key: Edge
    width: float
    points: Sequence[Point]


def place(wanted: Sequence[LabelRequest], taken: Sequence[Box], near: bool = False) -> dict[Edge, Point]:
    """Return the centres of the labels that have a free place; long labels are placed first.

    Labels are at the middle of their arrows, or `near` their beginnings.

    >>> place([LabelRequest((0, 1), 10, [(0, 0), (50, 0), (100, 0)])], [])
    {(0, 1): (50.0, -10.0)}
    """
    boxes = list(taken)
    found: dict[Edge, Point] = {}
    arrows = [_dense(label.points) for label in wanted]
    points = np.concatenate(arrows) if arrows else np.empty((0, 2))
    for label in sorted(wanted, key=lambda label: -label.width):
        best = None
        for cost, middle in _candidates(label, _NEAR if near else _SHARES):
            box = _around(middle, label.width)
            if (best is None or cost < best[0]) and not any(overlap(box, other) for other in boxes):
                covered = int(((points > box[:2]) & (points < box[2:])).all(1).sum())  # points of its own arrow too
                cost += _CROSSED * (covered > 0) + _COVERED * covered
                if best is None or cost < best[0]:
                    best = (cost, middle, box)
        if best is not None:
            found[label.key] = best[1]
            boxes.append(best[2])
    return found


def overlap(a: Box, b: Box) -> bool:
    """Return whether two boxes have more than a border in common."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _candidates(label: LabelRequest, shares: Sequence[float]) -> list[tuple[float, Point]]:
    points, found = label.points, []
    for i, share in enumerate(shares):
        k = min(max(round(share * (len(points) - 1)), 1), len(points) - 2) if len(points) > 2 else 0
        (x0, y0), (x1, y1) = points[max(k - 1, 0)], points[min(k + 1, len(points) - 1)]
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        nx, ny = (y1 - y0) / length, -(x1 - x0) / length
        for j, gap in enumerate(_GAPS):
            away = abs(nx) * label.width / 2 + abs(ny) * HEIGHT / 2 + gap
            for side in (1, -1):
                middle = (points[k][0] + side * nx * away, points[k][1] + side * ny * away)
                found.append((i + _FURTHER * j + (side < 0) * 1.5, middle))
    return found


def _around(middle: Point, width: float) -> Box:
    return middle[0] - width / 2, middle[1] - HEIGHT / 2, middle[0] + width / 2, middle[1] + HEIGHT / 2


def _dense(points: Sequence[Point]) -> np.ndarray:
    """Return points of a polygonal line at most `_STEP` pixels apart, shape (P, 2)."""
    corners = np.array(points, float)
    pieces = [corners[-1:]]
    for a, b in pairwise(corners):
        n = max(1, math.ceil(float(np.hypot(*(b - a))) / _STEP))
        pieces.append(a + (b - a) * np.arange(n)[:, None] / n)
    return np.concatenate(pieces)


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
