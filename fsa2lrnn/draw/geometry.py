"""Compute curves and places of labels, in pixels with y downwards; a curve is a cubic Bézier curve, float (4, 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

Edge = tuple[int, int]

_HEAD = 5.0  # the distance between the end of an arrow and its circle, for the arrowhead
_T = np.linspace(0, 1, 41)[:, None]
_BERNSTEIN = np.hstack([(1 - _T) ** 3, 3 * (1 - _T) ** 2 * _T, 3 * (1 - _T) * _T**2, _T**3])
_BENDS = (0.0, 0.12, 0.25, 0.4, 0.55, 0.7)  # bends of an arrow as shares of its length, small ones preferred
_APART = 16.0  # the least bend in pixels of an arrow if another one leads back
_CLEAR = 4.0  # pixels between an arrow and the circles that it passes

HEIGHT = 14.0  # the height of a line of text
_SHARES = tuple(0.5 + side * step / 40 for step in range(16) for side in (1, -1))[1:]  # places of a label on its arrow
_NEAR = tuple(sorted(_SHARES, key=lambda share: abs(share - 0.3)))
_GAPS = (3.0, 7.0, 12.0)  # distances between an arrow and its label
_ALONG, _FURTHER, _RIGHT = 0.35, 4.0, 1.5  # cost per less preferred place, per wider gap, and of the right side
_ON_ITS_OWN = 7.0  # cost of a label on its arrow
_COVERED = 0.35  # the largest share of its arrow that such a label may hide
_CROSSED = 25.0  # cost of a label on another arrow, or of one that hides its own: more than that of any other place
_CLEARER, _UNCLEAR = 5.0, 2.5  # pixels by which other arrows should be farther than its own; cost per missing pixel
_ROUNDS = 3  # rounds in which each label is moved to its best place among the others


def points_of(curves: np.ndarray) -> np.ndarray:
    """Return points of curves at equal steps of their parameter, including both ends: (…, 4, 2) -> (…, 41, 2)."""
    return _BERNSTEIN @ curves


def arrow(q: int, then: int, places: np.ndarray, radius: float, is_mutual: bool) -> np.ndarray:
    """Return the curve (4, 2) from circle q to circle `then` whose bend avoids most other circles, at `places` (n, 2).

    With `is_mutual` another arrow leads back, and both are bent to their left so that they do not meet.
    """
    length = float(np.linalg.norm(places[then] - places[q])) or 1.0
    bends = [max(bend, 0.14, _APART / length) for bend in _BENDS] if is_mutual else [*_BENDS, *(-b for b in _BENDS)]
    curves = np.stack([_arc(places[q], places[then], bend, radius) for bend in sorted(bends, key=abs)])
    others = np.delete(places, [q, then], axis=0)
    gaps = np.linalg.norm(points_of(curves)[:, :, None] - others, axis=-1)
    return curves[(gaps < radius + _CLEAR).sum((1, 2)).argmin()]


def _arc(a: np.ndarray, b: np.ndarray, bend: float, radius: float) -> np.ndarray:
    middle = (a + b) / 2 + bend * (b - a)[::-1] * (1, -1)
    start, end = _towards(a, middle, radius), _towards(b, middle, radius + _HEAD)
    return np.stack([start, (start + 2 * middle) / 3, (end + 2 * middle) / 3, end])


def loop(a: np.ndarray, radius: float, angle: float) -> np.ndarray:
    """Return the curve (4, 2) from the circle around `a` back to itself, in the direction `angle` in radians."""
    sizes, turns = np.array([radius, radius + 30, radius + 30, radius + _HEAD]), np.array([-0.42, -0.52, 0.52, 0.42])
    return a + sizes[:, None] * _directions(angle + turns)


def entry(a: np.ndarray, radius: float, angle: float) -> np.ndarray:
    """Return the curve (4, 2) that leads straight to the circle around `a`, from the direction `angle` in radians."""
    return a + np.linspace(radius + 30, radius + _HEAD, 4)[:, None] * _directions(np.array([angle]))


def head(curve: np.ndarray, size: float = 7.0) -> np.ndarray:
    """Return the corners of the arrowhead at the end of a curve, the tip first, (3, 2)."""
    turn = math.atan2(*(curve[-1] - curve[-2])[::-1])
    tip = curve[-1] + 4 * _directions(np.array([turn]))
    return np.concatenate([tip, tip - size * _directions(turn + np.array([-0.42, 0.42]))])


def free_direction(angles: Sequence[float], preferred: float) -> float:
    """Return the direction, of twelve, that is farthest from all `angles`, in radians; if equal, nearest `preferred`.

    >>> free_direction([0.0, 1.0, 2.0], -math.pi / 2), free_direction([], 0.5)
    (-1.5707963267948966, 0.5)
    """
    options = [preferred + side * step * math.pi / 6 for step in range(7) for side in (1, -1)]
    # Directions at least 1.2 radians from all others are equally good.
    return max(
        options, key=lambda angle: min([1.2, *(abs(math.remainder(angle - other, math.tau)) for other in angles)])
    )


def _directions(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def _towards(a: np.ndarray, b: np.ndarray, r: float) -> np.ndarray:
    return a + (b - a) * (r / (np.linalg.norm(b - a) or 1.0))


def boxes_around(middles: np.ndarray, widths: np.ndarray | float, heights: np.ndarray | float) -> np.ndarray:
    """Return boxes (left, top, right, bottom) of these sizes around points: (…, 2) -> (…, 4)."""
    half = np.stack(np.broadcast_arrays(np.asarray(widths) / 2, np.asarray(heights) / 2), axis=-1)
    return np.concatenate(np.broadcast_arrays(middles - half, middles + half), axis=-1)


def overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which boxes overlap in more than their borders: (n, 4), (m, 4) -> bool (n, m)."""
    mine, theirs = boxes[:, None], others[None]
    begins_before = np.concatenate([mine[..., :2] < theirs[..., 2:], theirs[..., :2] < mine[..., 2:]], axis=-1)
    return np.asarray(begins_before.all(axis=-1))


def gaps(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the distances between boxes in pixels, 0 if they overlap: (n, 4), (m, 4) -> (n, m)."""
    mine, theirs = boxes[:, None], others[None]
    apart = np.maximum(mine[..., :2] - theirs[..., 2:], theirs[..., :2] - mine[..., 2:])
    return np.asarray(np.hypot(*np.moveaxis(np.maximum(apart, 0), -1, 0)))


def place_labels(
    curves: Mapping[Edge, np.ndarray],
    widths: Mapping[Edge, float],
    taken: np.ndarray,
    near: bool = False,
    passed: np.ndarray | None = None,
) -> dict[Edge, np.ndarray]:
    """Return the centres (2,) of labels of given widths, for the curves for which a free place exists.

    Labels are near the middle of their arrows, or `near` their beginnings, and on no box of `taken`, (m, 4). If
    possible, they are closer to their own arrow than to others, to the points `passed`, (n, 2), and to other labels.
    Long labels are placed first.

    >>> straight = np.array([[0.0, 0.0], [33, 0], [67, 0], [100, 0]])
    >>> place_labels({(0, 1): straight}, {(0, 1): 10.0}, np.empty((0, 4)))[0, 1].round(6).tolist()
    [50.0, -10.0]
    """
    lines = {edge: points_of(curve) for edge, curve in curves.items()}
    fixed = np.empty((0, 2)) if passed is None else passed
    options: dict[Edge, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    for edge in sorted(curves, key=lambda edge: -widths[edge]):
        middles, costs = _candidates(lines[edge], widths[edge], _NEAR if near else _SHARES)
        boxes = boxes_around(middles, widths[edge], HEIGHT)
        rest = np.concatenate([fixed, *(line for other, line in lines.items() if other != edge)])
        costs = costs + _ambiguity(boxes, lines[edge], rest)
        costs[overlap(boxes, taken).any(1)] = np.inf
        options[edge] = middles, boxes, costs
    placed: dict[Edge, int] = {}
    for _ in range(_ROUNDS):
        for edge, (_, boxes, costs) in options.items():
            labels = [options[other][1][i] for other, i in placed.items() if other != edge]
            apart = gaps(boxes, np.array(labels).reshape(-1, 4))
            costs = costs + _UNCLEAR * np.maximum(_CLEARER - apart, 0).sum(1)
            costs[(apart == 0).any(1)] = np.inf
            if np.isfinite(costs[best := int(costs.argmin())]):
                placed[edge] = best
    return {edge: options[edge][0][best] for edge, best in placed.items()}


def _ambiguity(boxes: np.ndarray, own: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the costs of places of a label near other lines: boxes (n, 4), own (k, 2), rest (m, 2) -> (n,)."""
    mine = gaps(boxes, np.tile(own, 2))
    reach = mine.min(1).max() + _CLEARER
    is_near = ((rest > boxes[:, :2].min(0) - reach) & (rest < boxes[:, 2:].max(0) + reach)).all(1)
    others = gaps(boxes, np.tile(rest[is_near], 2))
    short = mine.min(1) + _CLEARER - others.min(1, initial=np.inf)
    is_bad = (others == 0).any(1) | ((mine == 0).mean(1) > _COVERED)
    return np.asarray(_UNCLEAR * np.maximum(short, 0) + _CROSSED * is_bad + (others == 0).sum(1))


def _candidates(points: np.ndarray, width: float, shares: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    middles, costs = [], []
    for i, share in enumerate(shares):
        k = round(share * (len(points) - 1))
        along = points[k + 1] - points[k - 1]
        across = along[::-1] * (1, -1) / (np.linalg.norm(along) or 1.0)
        middles.append(points[k])
        costs.append(_ALONG * i + _ON_ITS_OWN)
        for j, gap in enumerate(_GAPS):
            away = np.abs(across) @ (width / 2, HEIGHT / 2) + gap
            middles += [points[k] + away * across, points[k] - away * across]
            costs += [_ALONG * i + _FURTHER * j, _ALONG * i + _FURTHER * j + _RIGHT]
    return np.array(middles), np.array(costs)
