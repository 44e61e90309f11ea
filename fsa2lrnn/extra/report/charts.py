"""Compute the charts of a report: bars of proofs, accuracies, eigenvalues, planes of states, and blocks of weights.

Blocks are drawn here as SVG, the other charts by the templates of `pages/charts.html`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fsa2lrnn.display.markup import Markup, tag
from fsa2lrnn.display.svg import cut, picture, text
from fsa2lrnn.extra.report.facts import NEAR, Model, ReportFacts

PROTOCOLS = {"whole_word": "every output of the word right", "last_position": "last output right"}
LEVELS = 8  # levels of opacity per sign
LETTERS = 6  # the most letters whose blocks are drawn
_WIDTH, _LABEL, _GAP, _HEAD, _LARGEST = 320, 34, 4, 14, 8.0
_DECADES = 5  # decades of the symmetric logarithm below 1
_FOR_EVER = 12  # the part of a bar's width, in %, that represents all longer words


class Bar(NamedTuple):
    """A part of a model's bar, from `begin` to `end` in % of its width; `said` is its tooltip."""

    kind: str
    begin: float
    end: float
    label: str
    said: str


def horizon(facts: ReportFacts) -> tuple[list[tuple[str, float]], dict[str, list[Bar]]]:
    """Return the ticks of a logarithmic axis of lengths (text and place in %), and the bar of each model by name."""
    lengths = [n for model in facts.models for n in (model.proved, _failure(model)) if n]
    decades = max(3, math.ceil(math.log10(max(lengths, default=1)) + 0.25))

    def x(length: float) -> float:
        return (100 - _FOR_EVER) * math.log10(length) / decades

    ticks = [(short(10**k), x(10**k)) for k in range(decades)]
    ticks.append(("all words", 100))
    return ticks, {model.name: _bar(model, x) for model in facts.models}


def _bar(model: Model, x: Callable[[float], float]) -> list[Bar]:
    if model.proof is not None:
        return [Bar("proved", 0, 100, "proved on all words", f"proved on all words ({model.proof})")]
    proved, failure = model.proved or 0, _failure(model)
    end, until = x(max(proved, 1)), x(failure) if failure else 100.0
    bars = [Bar("unknown", end, until, "", "nothing is known here")]
    if proved:
        bars.insert(0, Bar("proved", 0, end, f"≤ {proved:,}", f"proved up to {proved:,} letters"))
    if failure:
        where = "at" if model.failure else "within"
        bars.append(Bar("fails", until, 100, f"fails {where} {failure:,}", f"fails on a word of {failure:,} letters"))
    return bars


def _failure(model: Model) -> int | None:
    return model.failure.position if model.failure else model.wrong_within


def short(n: int) -> str:
    """Return a word length as the label of an axis.

    >>> [short(n) for n in (40, 500, 5_000, 50_000, 1_000_000)]
    ['40', '500', '5k', '50k', '1M']
    """
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if n >= size and n % (size // 10) == 0:
            return f"{n / size:g}{letter}"
    return f"{n:,}"


def places_of(facts: ReportFacts) -> dict[int, float]:
    """Return the place, from 0 to 1 on a logarithmic scale, of each length at which some model was evaluated."""
    lengths = sorted({row["length"] for model in facts.models for row in model.accuracy})
    if len(lengths) < 2:
        return dict.fromkeys(lengths, 0.5)
    return {n: math.log(n / lengths[0]) / math.log(lengths[-1] / lengths[0]) for n in lengths}


class Eigenvalue(NamedTuple):
    """An eigenvalue of a block, with the numbers of its letter and head, and whether the head carries a function."""

    is_carrying: bool
    letter: int
    head: int
    real: float
    imag: float

    @property
    def modulus(self) -> float:
        return math.hypot(self.real, self.imag)


def eigenvalues(model: Model) -> tuple[float, list[Eigenvalue]]:
    """Return the radius that a drawing of the eigenvalues needs, and the eigenvalues, of carrying heads last."""
    numbers = [
        Eigenvalue(h in model.within.carrying, a, h, *pair)
        for a, heads in enumerate(model.within.eigenvalues)
        for h, head in enumerate(heads)
        for pair in head
    ]
    return max(1.25, *(1.08 * z.modulus for z in numbers)), sorted(numbers, key=lambda z: z.is_carrying)


def strip(modulus: float) -> float:
    """Return the place of a modulus on an axis from 0 to 1.1, with a signed logarithmic scale about 1.

    >>> [round(9 * strip(modulus), 6) for modulus in (0, 0.99, 1 - 1e-7, 1, 1.001, 1.1)]
    [0.0, 2.0, 5.0, 5.0, 7.0, 9.0]
    """
    size = abs(modulus - 1) * 10**_DECADES
    return (_DECADES + math.copysign(math.log10(max(size, 1.0)), modulus - 1)) / (2 * _DECADES - 1)


def plane(model: Model) -> tuple[float, dict[int, list[float]]]:
    """Return the largest coordinate in the plane of states, and the centre [x, y] of each state's NEAR points."""
    points = model.within.points
    reach = max((abs(x) for point in points for x in point[:2]), default=1.0) or 1.0
    near: dict[int, list[list[float]]] = {}
    for x, y, state, when in points:
        if when == NEAR:
            near.setdefault(int(state), []).append([x, y])
    return reach, {state: np.mean(near[state], axis=0).tolist() for state in sorted(near)}


def blocks(model: Model, letters: list[str], full: float | None = None) -> Markup:
    """Draw the transition blocks of a model as heat maps, blue below zero and red above.

    `full` is the absolute value with the full colour, by default that of the largest entry. Letters are drawn below
    each other, and also next to each other if the width allows it.
    """
    tables = model.within.blocks[:LETTERS]
    sizes = [len(head) for head in tables[0]]
    cell = min(_LARGEST, (_WIDTH - _LABEL - _GAP * len(sizes)) / sum(sizes))
    full = full or largest(model)
    wide = _LABEL + cell * sum(sizes) + _GAP * len(sizes)
    high = cell * max(sizes) + _GAP
    # Entries of one shade are collected in one path, which keeps the page small.
    abreast = max(1, min(len(tables), int(_WIDTH / wide)))
    drawn: list[Markup] = []
    shades: dict[str, list[str]] = defaultdict(list)
    carrying = model.within.carrying
    for i, (letter, heads) in enumerate(zip(letters, tables, strict=False)):
        left, top = i % abreast * wide, _HEAD + i // abreast * high
        drawn.append(text(left + _LABEL - 7, top + high / 2 + 2, cut(letter, 5), anchor="end"))
        left += _LABEL
        for h, block in enumerate(heads):
            b = len(block)
            if i < abreast and len(heads) > 1:
                class_ = "label tiny" if h in carrying else "label tiny faint"
                drawn.append(text(left + b * cell / 2, _HEAD - 4, str(h), class_=class_))
            drawn.append(tag("rect", x=left, y=top, width=b * cell, height=b * cell, class_="frame"))
            _shade(block, left, top, cell, full, shades)
            left += b * cell + _GAP
    painted = [tag("path", d="".join(paths), class_=shade) for shade, paths in sorted(shades.items())]
    said = f"Transition blocks of {model.name}, for each letter one block per head; full colour is {full:.2f}"
    rows = -(-len(tables) // abreast)
    return picture(_WIDTH, _HEAD + high * rows, said, *painted, *drawn)


def change(before: Model, after: Model) -> Model | None:
    """Return a model whose blocks are the differences of two models' blocks, or None if the shapes differ."""
    old, new = np.array(before.within.blocks), np.array(after.within.blocks)
    if old.shape != new.shape:
        return None
    changed = replace(before.within, blocks=(new - old).tolist())
    return replace(before, name=f"the change from {before.name} to {after.name}", inside=changed)


def largest(model: Model) -> float:
    """Return the largest absolute value of an entry of a model's blocks, or 1 if all are zero."""
    return max(abs(x) for heads in model.within.blocks for block in heads for row in block for x in row) or 1.0


def _shade(
    block: list[list[float]], left: float, top: float, cell: float, full: float, shades: dict[str, list[str]]
) -> None:
    for i, row in enumerate(block):
        for j, value in enumerate(row):
            if level := min(round(abs(value) / full * LEVELS), LEVELS):
                path = f"M{left + j * cell:.1f} {top + i * cell:.1f}h{cell:.1f}v{cell:.1f}h-{cell:.1f}z"
                shades[f"heat {'below' if value < 0 else 'above'} l{level}"].append(path)
