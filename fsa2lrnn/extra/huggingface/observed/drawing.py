"""A picture of eigenvalues: a histogram a head, a row a layer; what is below zero stands out."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.display.markup import Markup, picture, standing_alone, tag, text
from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE, GateObservations, ObservedHead, merged
from fsa2lrnn.extra.huggingface.observed.values import BINS

_WIDE, _HIGH, _GAP, _LEFT, _TOP = 96.0, 40.0, 10.0, 64.0, 52.0
_BARS = 32
_MOST = 1_024  # histograms; of more, each layer has one for all its heads
_BELOW, _ABOVE = "#c8472f", "#2c63b8"


def svg(found: GateObservations) -> str:
    """A whole SVG file: of each head how often its least eigenvalue lies where, from the least that is reached to 1.

    A bar's height is the root of its share, so that what is rare can be seen.
    """
    rows = {number: tuple(heads) for number, heads in found.by_layer().items()}
    if len(found.heads) > _MOST:
        rows = {number: (merged(heads, found.measures),) for number, heads in rows.items()}
    measure = next(measure for measure in found.measures if measure.name == EIGENVALUE)
    columns = max(map(len, rows.values()))
    size = max(_LEFT + columns * (_WIDE + _GAP) + 8, 460.0), _TOP + len(rows) * (_HIGH + _GAP + 6) + 20
    drawn: list[Markup] = [text(8, 20, f"{found.layer}: least eigenvalue of each step", anchor="start")]
    below = f"from {measure.low:g} to {measure.high:g}, {found.read}"
    drawn.append(text(8, 38, below, anchor="start", class_="label faint"))
    for i, (number, heads) in enumerate(rows.items()):
        y = _TOP + i * (_HIGH + _GAP + 6)
        drawn.append(text(8, y + _HIGH / 2 + 4, f"layer {number}", anchor="start", class_="label faint"))
        for j, head in enumerate(heads):
            drawn.append(_histogram(head, _LEFT + j * (_WIDE + _GAP), y, measure.low, measure.high))
    return standing_alone(picture(*size, f"Eigenvalues of {found.layer}", *drawn, class_="automaton"), size)


def _histogram(head: ObservedHead, x: float, y: float, low: float, high: float) -> Markup:
    counts = head.spreads[EIGENVALUE].counts.reshape(_BARS, BINS // _BARS).sum(axis=1)
    heights = np.sqrt(counts / counts.sum()) * _HIGH
    step = _WIDE / _BARS
    paths = {_BELOW: "", _ABOVE: ""}
    for bar, height in enumerate(heights):
        if height:
            colour = _BELOW if low + (bar + 0.5) * (high - low) / _BARS < 0 else _ABOVE
            up = max(height, 0.8)
            paths[colour] += f"M{x + bar * step:.1f} {y + _HIGH:.1f}v{-up:.1f}h{step:.1f}v{up:.1f}z"
    drawn = [tag("path", d=path, fill=colour) for colour, path in paths.items() if path]
    zero = x - low / (high - low) * _WIDE
    frame = tag("path", d=f"M{x:.1f} {y + _HIGH:.1f}h{_WIDE:g}M{zero:.1f} {y + _HIGH:.1f}v4", class_="edge")
    name = "all heads" if head.head < 0 else f"head {head.head}"
    said = tag("title", f"layer {head.layer}, {name}: {head.negative:,} of {head.n:,} below zero")
    return tag("g", said, frame, *drawn)
