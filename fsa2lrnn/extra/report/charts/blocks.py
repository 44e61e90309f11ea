"""Charts of weights: transition blocks as heat maps, one row per letter, and their eigenvalues in the complex plane."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from fsa2lrnn.display.markup import Markup, tag
from fsa2lrnn.display.svg import cut, line, picture, text
from fsa2lrnn.extra.report.charts.horizon import fit, linear, symmetric
from fsa2lrnn.extra.report.drawing.automaton import hue
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import NEAR, Model

LEVELS = 8  # of opacity, for each sign
LETTERS = 6  # drawn, of more the first
_WIDTH, _LABEL, _GAP, _HEAD, _LARGEST = 320, 34, 4, 14, 8.0


def blocks(model: Model, letters: list[str], full: float | None = None) -> Markup:
    """Draw the blocks as heat maps, blue below zero and red above.

    `full` is the absolute value with the full colour, by default that of the largest entry. Letters are drawn below
    each other, and where the width allows also next to each other.
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
    """Return a model whose blocks are the differences of two models' blocks, or None if the shapes differ."""
    old, new = np.array(before.within.blocks), np.array(after.within.blocks)
    if old.shape != new.shape:
        return None
    changed = replace(before.within, blocks=(new - old).tolist())
    return replace(before, name=f"the change from {before.name} to {after.name}", inside=changed)


def largest(model: Model) -> float:
    """Return the largest absolute value of an entry of the blocks, or 1 if all are zero."""
    return max(abs(x) for heads in model.within.blocks for block in heads for row in block for x in row) or 1.0


def _shade(
    block: list[list[float]], left: float, top: float, cell: float, full: float, shades: dict[str, list[str]]
) -> None:
    for i, row in enumerate(block):
        for j, value in enumerate(row):
            if level := min(round(abs(value) / full * LEVELS), LEVELS):
                path = f"M{left + j * cell:.1f} {top + i * cell:.1f}h{cell:.1f}v{cell:.1f}h-{cell:.1f}z"
                shades[f"heat {'below' if value < 0 else 'above'} l{level}"].append(path)


_SIZE = 280


def geometry(model: Model, machine: DrawnMachine) -> Markup:
    """Draw the states in a plane: dots after the first letters, crosses after hundreds, labels at the centres."""
    points = model.within.points
    n, names = len(machine.states), machine.names
    place = fit([(x, y) for x, y, *_ in points], _SIZE, 26)
    drawn: list[Markup] = [tag("rect", x=0.5, y=0.5, width=_SIZE - 1, height=_SIZE - 1, rx=8, class_="frame")]
    for x, y, state, when in points:
        px, py = place(x, y)
        style = hue(int(state), n)
        if when == NEAR:
            drawn.append(tag("circle", cx=px, cy=py, r=3, class_="state near", style=style))
        else:
            path = f"M{px - 3.2:.1f} {py - 3.2:.1f}l6.4 6.4m0 -6.4l-6.4 6.4"
            drawn.append(tag("path", d=path, class_="state far", style=style))
    for state in range(n):
        near = [(x, y) for x, y, q, when in points if q == state and when == NEAR]
        if near:
            px, py = place(*np.mean(near, axis=0).tolist())
            drawn.append(text(px, py - 9, names[state], class_="label halo"))
    return picture(_SIZE, _SIZE, f"States of {model.name} in a plane, coloured by the automaton's state", *drawn)


_PLANE_SIZE, _STRIP = 280, 64
_TICKS = (
    (-1, "0"),
    (-0.1, ".9"),
    (-0.01, ".99"),
    (-0.001, ".999"),
    (0, "1"),
    (0.001, "1.001"),
    (0.01, ""),
    (0.1, "1.1"),
)


def eigenvalues(model: Model, letters: list[str]) -> Markup:
    """Draw the eigenvalues of all letters: coloured for heads that carry the state, pale for the others."""
    given, carrying = model.within.eigenvalues, set(model.within.carrying)
    numbers = [
        (complex(*pair), h in carrying, f"{pair[0]:+.4f} {pair[1]:+.4f}i, letter {letter}, head {h + 1}")
        for letter, heads in zip(letters, given, strict=True)
        for h, head in enumerate(heads)
        for pair in head
    ]
    numbers.sort(key=lambda found: found[1])
    reach = max(1.25, *(abs(z) * 1.08 for z, _, _ in numbers))
    x = linear(-reach, reach, 8, _PLANE_SIZE - 8)
    drawn = [
        line(8, _PLANE_SIZE / 2, _PLANE_SIZE - 8, _PLANE_SIZE / 2, "grid"),
        line(_PLANE_SIZE / 2, 8, _PLANE_SIZE / 2, _PLANE_SIZE - 8, "grid"),
        tag("circle", cx=_PLANE_SIZE / 2, cy=_PLANE_SIZE / 2, r=x(1) - x(0), class_="unit"),
        text(_PLANE_SIZE - 10, _PLANE_SIZE / 2 - 6, "Re", anchor="end", class_="label faint"),
        text(_PLANE_SIZE / 2 + 6, 18, "Im", anchor="start", class_="label faint"),
    ]
    for z, is_carrying, said in numbers:
        class_ = f"dot {model.kind}" if is_carrying else "dot idle"
        drawn.append(tag("circle", tag("title", said), cx=x(z.real), cy=_PLANE_SIZE - x(z.imag), r=3.4, class_=class_))
    drawn += _strip(model, [(abs(z), is_carrying) for z, is_carrying, _ in numbers])
    name = f"Eigenvalues of {model.name} with the unit circle, and their moduli"
    return picture(_PLANE_SIZE, _PLANE_SIZE + _STRIP, name, *drawn)


def _strip(model: Model, moduli: list[tuple[float, bool]]) -> list[Markup]:
    top = _PLANE_SIZE + 22
    x = linear(symmetric(-1), symmetric(0.1), 18, _PLANE_SIZE - 18)
    drawn = [line(18, top, _PLANE_SIZE - 18, top, "axis"), line(x(0), top - 12, x(0), top + 12, "unit")]
    for value, label in _TICKS:
        place = x(symmetric(value))
        drawn += [
            line(place, top, place, top + 4, "axis"),
            text(place, top + 17, label, class_="label tiny"),
        ]
    drawn.append(text(_PLANE_SIZE / 2, top + 34, "modulus, a logarithmic scale about 1", class_="label faint"))
    for modulus, is_carrying in moduli:
        class_ = f"tick {model.kind}" if is_carrying else "tick idle"
        place = min(max(x(symmetric(modulus - 1)), 10), _PLANE_SIZE - 10)
        drawn.append(line(place, top - 10, place, top - 1, class_))
    return drawn
