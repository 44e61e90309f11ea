"""Transition blocks as heat maps: a row a letter, a block a head."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from fsa2lrnn.display.markup import Markup, cut, picture, tag, text
from fsa2lrnn.extra.report.facts import Model

LEVELS = 8  # of opacity, for each sign
LETTERS = 6  # drawn, of more the first
_WIDTH, _LABEL, _GAP, _HEAD, _LARGEST = 320, 34, 4, 14, 8.0


def blocks(model: Model, letters: list[str], full: float | None = None) -> Markup:
    """Blue below zero, red above; `full` is the size that has the full colour, by default the largest entry's.

    Letters stand below each other, and beside each other too where there is room.
    """
    tables = model.within.blocks[:LETTERS]
    sizes = [len(head) for head in tables[0]]
    cell = min(_LARGEST, (_WIDTH - _LABEL - _GAP * len(sizes)) / sum(sizes))
    full = full or largest(model)
    wide = _LABEL + cell * sum(sizes) + _GAP * len(sizes)
    high = cell * max(sizes) + _GAP
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
                drawn.append(text(left + b * cell / 2, _HEAD - 4, str(h + 1), class_=class_))
            drawn.append(tag("rect", x=left, y=top, width=b * cell, height=b * cell, class_="frame"))
            _shade(block, left, top, cell, full, shades)
            left += b * cell + _GAP
    painted = [tag("path", d="".join(paths), class_=shade) for shade, paths in sorted(shades.items())]
    said = f"Transition blocks of {model.name}, for each letter a block a head; full colour is {full:.2f}"
    rows = -(-len(tables) // abreast)
    return picture(_WIDTH, _HEAD + high * rows, said, *painted, *drawn)


def change(before: Model, after: Model) -> Model | None:
    """A model whose blocks are the differences of two models' blocks, None where these are of unlike shapes."""
    old, new = np.array(before.within.blocks), np.array(after.within.blocks)
    if old.shape != new.shape:
        return None
    changed = replace(before.within, blocks=(new - old).tolist())
    return replace(before, name=f"the change from {before.name} to {after.name}", inside=changed)


def largest(model: Model) -> float:
    """The largest size of an entry."""
    return max(abs(x) for heads in model.within.blocks for block in heads for row in block for x in row) or 1.0


def _shade(
    block: list[list[float]], left: float, top: float, cell: float, full: float, shades: dict[str, list[str]]
) -> None:
    for i, row in enumerate(block):
        for j, value in enumerate(row):
            if level := min(round(abs(value) / full * LEVELS), LEVELS):
                path = f"M{left + j * cell:.1f} {top + i * cell:.1f}h{cell:.1f}v{cell:.1f}h-{cell:.1f}z"
                shades[f"heat {'below' if value < 0 else 'above'} l{level}"].append(path)
