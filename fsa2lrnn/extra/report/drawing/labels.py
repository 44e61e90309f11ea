"""Where labels of arrows stand: each beside its own arrow, and on no other arrow, circle or label."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fsa2lrnn.extra.report.drawing.curves import Box, Point
from fsa2lrnn.extra.report.drawing.ranks import Edge

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
