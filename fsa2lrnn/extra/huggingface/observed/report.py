"""Report the observed gates of a model, head by head, as text, JSON and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from fsa2lrnn.display import Brief, Markup, tag
from fsa2lrnn.draw.svg import picture, standing_alone, text
from fsa2lrnn.extra.huggingface.observed.values import BINS, Measure, Spread

EIGENVALUE = "eigenvalue"  # the measure that every layer has: the least eigenvalue of the transition


@dataclass(frozen=True, eq=False)
class ObservedHead(Brief):
    """The observed values of one head of one layer.

    Args:
        layer, head: numbers from 0; layers are counted as in the model. The head is −1 for all heads of one layer.
        negative: the number of observations in which the transition has a negative eigenvalue.
        spreads: the distribution of each measure of the layer, by name.
    """

    layer: int
    head: int
    negative: int
    spreads: Mapping[str, Spread]

    @property
    def n(self) -> int:
        """The number of observations, which is the number of tokens for a single head."""
        return self.spreads[EIGENVALUE].n

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, with `negative` as a share of the observations."""
        spreads = {name: spread.to_json() for name, spread in self.spreads.items()}
        return {"layer": self.layer, "head": self.head, "negative": self.negative / self.n, **spreads}


@dataclass(frozen=True, eq=False)
class GateObservations(Brief):
    """The observed values of a model's gates.

    Args:
        layer: the name of the layer in `fsa2lrnn.extra.huggingface.LAYERS`.
        model: the class, dtype and package versions of the model.
        read: a description of the tokens that were read.
        n_tokens: the number of tokens.
        reach: the least and the largest eigenvalue that the layer can have, with the model's configuration.
        measures: the measures in the order of display.
        heads: the heads of all layers that have a state.
    """

    layer: str
    model: Mapping[str, str]
    read: str
    n_tokens: int
    reach: tuple[float, float]
    measures: tuple[Measure, ...]
    heads: tuple[ObservedHead, ...]

    @property
    def negative(self) -> float:
        """The share of pairs of a token and a head at which an eigenvalue is negative."""
        return sum(head.negative for head in self.heads) / sum(head.n for head in self.heads)

    @property
    def least(self) -> float:
        """The least observed eigenvalue."""
        return min(head.spreads[EIGENVALUE].least for head in self.heads)

    def by_layer(self) -> dict[int, Sequence[ObservedHead]]:
        """Return the heads by the number of their layer."""
        return {number: tuple(heads) for number, heads in groupby(self.heads, key=lambda head: head.layer)}

    def explain(self) -> str:
        """Return a sentence that states whether and how often eigenvalues are negative."""
        if self.reach[0] >= 0:
            return f"no eigenvalue can be negative: this layer reaches {_range(self.reach)}"
        using = [head for head in self.heads if head.negative]
        if not using:
            return (
                f"no eigenvalue is negative, though the layer reaches {_range(self.reach)}: the least is "
                f"{self.least:.4g}"
            )
        often = sum(head.negative * 2 >= head.n for head in using)
        return (
            f"{len(using):,} of {len(self.heads):,} heads use negative eigenvalues, {often:,} of them at every second "
            f"token or more; that is {self.negative:.2%} of tokens and heads, and the least is {self.least:.4g} of "
            f"{self.reach[0]:g}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with all heads."""
        return {
            "layer": self.layer,
            "model": dict(self.model),
            "read": self.read,
            "tokens": self.n_tokens,
            "reach": list(self.reach),
            "negative": self.negative,
            "least": self.least,
            "heads": [head.to_json() for head in self.heads],
        }


def merged(heads: Sequence[ObservedHead], measures: Sequence[Measure]) -> ObservedHead:
    """Merge several heads into one, with the distributions of all their values together."""
    spreads = dict[str, Spread]()
    for measure in measures:
        parts = [head.spreads[measure.name] for head in heads]
        counts = np.sum([part.counts for part in parts], axis=0)
        n, least, most = sum(part.n for part in parts), min(p.least for p in parts), max(p.most for p in parts)
        mean = sum(part.mean * part.n for part in parts) / n
        exactly = {mark: sum(part.exactly[mark] for part in parts) for mark in measure.marks}
        spreads[measure.name] = Spread(least, most, mean, measure.quantiles(counts, least, most), counts, exactly, n)
    return ObservedHead(heads[0].layer, -1, sum(head.negative for head in heads), spreads)


def _range(reach: tuple[float, float]) -> str:
    return f"[{reach[0]:g}, {reach[1]:g}]"


_WIDE, _HIGH, _GAP, _LEFT, _TOP = 96.0, 40.0, 10.0, 64.0, 52.0
_BARS = 32
_MOST = 1_024  # histograms; of more, each layer has one for all its heads
_BELOW, _ABOVE = "#c8472f", "#2c63b8"


def svg(found: GateObservations) -> str:
    """Return an SVG file with a histogram of the least eigenvalue of each head, over the range of its measure.

    With more than 1,024 heads there is one histogram per layer. The height of a bar is the square root of its share, so
    that rare values are visible.
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
