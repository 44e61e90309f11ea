"""Labels beside their arrows, clear of circles and of one another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fsa2lrnn.extra.report.drawing.curves import Box, Point
from fsa2lrnn.extra.report.drawing.ranks import Edge

HEIGHT = 14.0  # of a line of text
_SHARES = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72, 0.22, 0.78)  # of the way along the arrow, by preference
_NEAR = (0.3, 0.26, 0.34, 0.22, 0.38, 0.42, 0.5, 0.58, 0.66)
_GAPS = (3.0, 12.0)  # between the arrow and its label
_CROSSED = 3.0  # what it costs to stand on a point of another arrow
_FURTHER = 8.0  # what the wider gap costs


class LabelRequest(NamedTuple):
    """A label that wants a place: what it is of, its width, and points along its arrow."""

    key: Edge
    width: float
    points: Sequence[Point]


def place(wanted: Sequence[LabelRequest], taken: Sequence[Box], near: bool = False) -> dict[Edge, Point]:
    """The middles of labels, for those that find a place which is free; long ones choose first. Labels stand at the
    middle of their arrows, or `near` their beginnings.

    >>> place([LabelRequest((0, 1), 10, [(0, 0), (50, 0), (100, 0)])], [])
    {(0, 1): (50.0, -10.0)}
    """
    boxes = list(taken)
    found: dict[Edge, Point] = {}
    others = [(label.key, point) for label in wanted for point in label.points]
    for label in sorted(wanted, key=lambda label: -label.width):
        best = None
        for cost, middle in _candidates(label, _NEAR if near else _SHARES):
            box = _around(middle, label.width)
            if (best is None or cost < best[0]) and not any(overlap(box, other) for other in boxes):
                crossed = sum(key != label.key and _holds(box, point) for key, point in others)
                if best is None or cost + _CROSSED * crossed < best[0]:
                    best = (cost + _CROSSED * crossed, middle, box)
        if best is not None:
            found[label.key] = best[1]
            boxes.append(best[2])
    return found


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes have more than a border in common."""
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


def _holds(box: Box, point: Point) -> bool:
    return box[0] < point[0] < box[2] and box[1] < point[1] < box[3]
