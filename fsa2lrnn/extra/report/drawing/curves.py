"""Curves of an automaton's arrows: chains of cubic Bézier pieces, p₀ c c p₁ c c p₂ …, y downwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom
Curve = tuple[Point, ...]

_HEAD = 5.0  # that an arrow ends before its circle, for the head


def arc(a: Point, b: Point, bend: float, radius: float, both: bool = False) -> Curve:
    """Return an arc from circle to circle, bent to the left by the share `bend` of its length.

    With `both`, an arrow in the opposite direction exists too, and the arc is bent more, so that the two are apart.
    """
    (x1, y1), (x2, y2) = a, b
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    away = max(bend * length, 16.0 if both else 0.0)
    c = ((x1 + x2) / 2 + uy * away, (y1 + y2) / 2 - ux * away)
    start, end = towards(a, c, radius), towards(b, c, radius + _HEAD)
    return start, _mix(start, c, 2 / 3), _mix(end, c, 2 / 3), end


def between(a: Point, b: Point, radius: float, aside: float) -> Curve:
    """Return a curve from one column to the next, level at both ends, shifted by `aside` from the opposite arrow."""
    (x1, y1), (x2, y2) = a, b
    sign = 1 if x2 > x1 else -1
    reach = sign * max(abs(x2 - x1) * 0.42, radius + 8)
    c, d = (x1 + reach, y1 - sign * aside), (x2 - reach, y2 - sign * aside)
    return towards(a, _mix(a, c, 1.0), radius), c, d, towards(b, d, radius + _HEAD)


def through(points: Sequence[Point], radius: float) -> Curve:
    """Return a curve from circle to circle through waypoints, which it passes horizontally."""
    slopes = [(0.0, 0.0)] * len(points)
    for i in range(1, len(points) - 1):
        (x0, y0), (x1, y1) = points[i - 1], points[i + 1]
        slopes[i] = ((x1 - x0) / 5, (y1 - y0) / 8)
    first, last = points[0], points[-1]
    curve: list[Point] = [first]
    for i, (p, q) in enumerate(pairwise(points)):
        c = (p[0] + slopes[i][0], p[1] + slopes[i][1]) if i else _mix(p, q, 0.35)
        d = (q[0] - slopes[i + 1][0], q[1] - slopes[i + 1][1]) if i + 2 < len(points) else _mix(q, p, 0.35)
        curve += [c, d, q]
    curve[0] = towards(first, curve[1], radius)
    curve[-1] = towards(last, curve[-2], radius + _HEAD)
    return tuple(curve)


def loop(a: Point, radius: float, angle: float) -> Curve:
    """Return a loop from a circle back to itself, in the direction `angle`."""

    def at(r: float, turn: float) -> Point:
        return a[0] + r * math.cos(turn), a[1] + r * math.sin(turn)

    return (
        at(radius, angle - 0.42),
        at(radius + 30, angle - 0.52),
        at(radius + 30, angle + 0.52),
        at(radius + _HEAD, angle + 0.42),
    )


def towards(a: Point, b: Point, r: float) -> Point:
    """Return the point at distance r from a in the direction of b."""
    length = math.hypot(b[0] - a[0], b[1] - a[1]) or 1.0
    return a[0] + (b[0] - a[0]) / length * r, a[1] + (b[1] - a[1]) / length * r


def along(curve: Curve, pieces: int = 12) -> list[Point]:
    """Return points of a curve at equal steps of its parameter, including both ends."""
    found = [curve[0]]
    for i in range(0, len(curve) - 1, 3):
        p, c, d, q = curve[i : i + 4]
        for k in range(1, pieces + 1):
            t = k / pieces
            s = 1 - t
            x, y = (s**3 * p[j] + 3 * s * s * t * c[j] + 3 * s * t * t * d[j] + t**3 * q[j] for j in (0, 1))
            found.append((x, y))
    return found


def head(curve: Curve, size: float = 7.0) -> tuple[Point, Point, Point]:
    """Return the corners of the arrowhead at the end of a curve, the tip first."""
    (x0, y0), (x, y) = curve[-2], curve[-1]
    turn = math.atan2(y - y0, x - x0)
    tip = (x + 4 * math.cos(turn), y + 4 * math.sin(turn))
    return (
        tip,
        (tip[0] - size * math.cos(turn - 0.42), tip[1] - size * math.sin(turn - 0.42)),
        (tip[0] - size * math.cos(turn + 0.42), tip[1] - size * math.sin(turn + 0.42)),
    )


def widest_gap(angles: Sequence[float], otherwise: float) -> float:
    """Return the direction in the middle of the widest gap between directions.

    Among gaps of almost equal width it is the one whose middle is nearest to `otherwise`, which is also the result
    without directions.

    >>> round(widest_gap([0.0, 1.0, 2.0], 0.0), 3), widest_gap([], 0.5)
    (-2.142, 0.5)
    """
    ordered = sorted(math.remainder(angle, 2 * math.pi) for angle in angles)
    if not ordered:
        return otherwise
    gaps = [
        (then - angle, angle + (then - angle) / 2) for angle, then in pairwise([*ordered, ordered[0] + 2 * math.pi])
    ]
    best = max(gap for gap, _ in gaps)
    middles = [math.remainder(middle, 2 * math.pi) for gap, middle in gaps if gap > best - 0.2]
    return min(middles, key=lambda middle: abs(math.remainder(middle - otherwise, 2 * math.pi)))


def _mix(a: Point, b: Point, share: float) -> Point:
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share
