"""Where the gates of a model live: what was found, head by head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from fsa2lrnn.display.brief import Brief
from fsa2lrnn.extra.huggingface.observed.values import Measure, Spread

EIGENVALUE = "eigenvalue"  # the measure that every layer has: the least eigenvalue of what multiplies the state


@dataclass(frozen=True, eq=False)
class ObservedHead(Brief):
    """One head of one layer.

    Args:
        layer, head: numbers from 0, the former as the model counts its layers.
        negative: at how many tokens its transition has a negative eigenvalue.
        spreads: by the names of the layer's measures.
    """

    layer: int
    head: int
    negative: int
    spreads: Mapping[str, Spread]

    @property
    def n(self) -> int:
        """Tokens that were read."""
        return self.spreads[EIGENVALUE].n

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        spreads = {name: spread.to_json() for name, spread in self.spreads.items()}
        return {"layer": self.layer, "head": self.head, "negative": self.negative / self.n, **spreads}


@dataclass(frozen=True, eq=False)
class GateObservations(Brief):
    """What the gates of a model did.

    Args:
        layer: its name in `released.LAYERS`.
        model: its class, dtype, versions of packages.
        read: what it read, in words.
        n_tokens: how many.
        reach: the least and the largest eigenvalue that the layer can have, with the model's configuration.
        measures: in the order in which they are shown.
        heads: of all layers that have a state.
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
        """The share of tokens and heads with a negative eigenvalue."""
        return sum(head.negative for head in self.heads) / sum(head.n for head in self.heads)

    @property
    def least(self) -> float:
        """The least eigenvalue."""
        return min(head.spreads[EIGENVALUE].least for head in self.heads)

    def by_layer(self) -> dict[int, Sequence[ObservedHead]]:
        """Heads by the number of their layer."""
        return {number: tuple(heads) for number, heads in groupby(self.heads, key=lambda head: head.layer)}

    def explain(self) -> str:
        """The answer in a sentence: whether negative eigenvalues are used."""
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
        """A JSON object, all heads in it."""
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
    """Several heads as one: ranges around all of theirs, quantiles of all their values."""
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
