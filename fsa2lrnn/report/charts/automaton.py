"""The automaton: a circle a state, an arrow for all letters that lead from one state to another."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

import networkx as nx

from fsa2lrnn.extras import require
from fsa2lrnn.report.charts.geometry import hue
from fsa2lrnn.report.charts.scales import linear
from fsa2lrnn.report.facts import Machine
from fsa2lrnn.report.markup import Markup, cut, join, picture, tag, text

DRAWN = 30  # states; of more, a drawing shows nothing
_WIDTH, _HEIGHT = 620.0, 460.0
_ROOM, _LABELS = 60.0, 115.0  # left free above and below, and at both sides
_SHOWN_LETTERS = 4


def automaton(machine: Machine) -> Markup | None:
    """States on a circle if every state leads to every other, else spread by the arrows between them; None for more
    than `DRAWN` states."""
    n = len(machine.states)
    if n > DRAWN:
        return None
    letters: dict[tuple[int, int], list[str]] = defaultdict(list)
    for letter, row in zip(machine.alphabet, machine.delta, strict=True):
        for q, then in enumerate(row):
            letters[q, then].append(letter)
    places = _layout(n, list(letters))
    r = 24.0 if n <= 12 else 15.0
    drawn: list[Markup] = [_arrowhead()]
    free = [_free(q, places, list(letters)) for q in range(n)]
    for (q, then), given in letters.items():
        said = f"{machine.states[q]} → {machine.states[then]}: {', '.join(given)}"
        label = ", ".join(given[:_SHOWN_LETTERS]) + (" …" if len(given) > _SHOWN_LETTERS else "")
        if q == then:
            drawn.append(_loop(places[q], free[q], r, label, said))
        else:
            drawn.append(_arrow(places[q], places[then], (then, q) in letters, r, label, said))
    beside = [free[machine.start]] if (machine.start, machine.start) in letters else []
    drawn.append(_start(places[machine.start], _free(machine.start, places, list(letters), beside), r))
    for q, (x, y) in enumerate(places):
        drawn.append(_state(machine, q, x, y, r, n))
    return picture(_WIDTH, _HEIGHT, f"The automaton: {n} states over {len(machine.alphabet)} letters", *drawn)


def _layout(n: int, edges: list[tuple[int, int]]) -> list[tuple[float, float]]:
    graph: nx.DiGraph = nx.DiGraph(edges)
    graph.add_nodes_from(range(n))
    across, up = _WIDTH / 2 - _LABELS, _HEIGHT / 2 - _ROOM
    if n == 1:
        return [(_WIDTH / 2, _HEIGHT / 2)]
    if nx.is_strongly_connected(graph):
        turns = [2 * math.pi * q / n for q in range(n)]
        return [(_WIDTH / 2 + up * math.sin(turn), _HEIGHT / 2 - up * math.cos(turn)) for turn in turns]
    require("scipy", "repair", "the drawing of an automaton")  # networkx counts on it here
    at = nx.kamada_kawai_layout(graph.to_undirected())
    xs, ys = ([float(at[q][axis]) for q in range(n)] for axis in (0, 1))
    x = linear(min(xs), max(xs), _WIDTH / 2 - across, _WIDTH / 2 + across)
    y = linear(min(ys), max(ys), _HEIGHT / 2 + up, _HEIGHT / 2 - up)
    return [(x(xs[q]), y(ys[q])) for q in range(n)]


def _state(machine: Machine, q: int, x: float, y: float, r: float, n: int) -> Markup:
    name, output = machine.names[q], machine.outputs[q]
    said = tag("title", f"state {machine.states[q]}, output {output}")
    circle = tag("circle", said, cx=x, cy=y, r=r, class_="node", style=hue(q, n))
    if name == output or r < 20:
        return join(circle, text(x, y + 4, name))
    return join(circle, text(x, y + 1, name), text(x, y + 13, cut(output, 7), class_="label tiny faint"))


def _arrow(a: tuple[float, float], b: tuple[float, float], is_mutual: bool, r: float, label: str, said: str) -> Markup:
    (x1, y1), (x2, y2) = a, b
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    bend = 0.16 * length if is_mutual else 0.06 * length
    cx, cy = (x1 + x2) / 2 + uy * bend, (y1 + y2) / 2 - ux * bend
    start, end = _edge(a, (cx, cy), r), _edge(b, (cx, cy), r + 5)
    path = f"M{start[0]:.1f} {start[1]:.1f}Q{cx:.1f} {cy:.1f} {end[0]:.1f} {end[1]:.1f}"
    # Off the middle, so that labels of arrows that cross there stay apart.
    t = 0.38 if length > 6 * r else 0.5
    away = 10 + 4 * abs(ux)  # more where the label lies along the arrow
    lx = (1 - t) ** 2 * x1 + 2 * t * (1 - t) * cx + t**2 * x2 + uy * away
    ly = (1 - t) ** 2 * y1 + 2 * t * (1 - t) * cy + t**2 * y2 - ux * away
    curve = tag("path", tag("title", said), d=path, class_="edge", marker_end="url(#head)")
    return tag("g", curve, text(lx, ly + 4, label, anchor=_anchor(uy), class_="label halo"))


def _loop(a: tuple[float, float], angle: float, r: float, label: str, said: str) -> Markup:
    (x1, y1), (x2, y2) = _around(a, r, angle - 0.45), _around(a, r + 5, angle + 0.45)
    (x3, y3), (x4, y4) = _around(a, r + 34, angle - 0.55), _around(a, r + 34, angle + 0.55)
    path = f"M{x1:.1f} {y1:.1f}C{x3:.1f} {y3:.1f} {x4:.1f} {y4:.1f} {x2:.1f} {y2:.1f}"
    curve = tag("path", tag("title", said), d=path, class_="edge", marker_end="url(#head)")
    x, y = _around(a, r + 33, angle)
    return tag("g", curve, text(x, y + 4, label, anchor=_anchor(math.cos(angle)), class_="label halo"))


def _anchor(side: float) -> str:
    """Of a label that lies to the left of what it names (−1), to the right (1), above or below (0): it leads away."""
    return "start" if side > 0.4 else "end" if side < -0.4 else "middle"


def _start(a: tuple[float, float], angle: float, r: float) -> Markup:
    (x1, y1), (x2, y2) = _around(a, r + 32, angle), _around(a, r + 5, angle)
    path = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
    return tag("path", tag("title", "start"), d=path, class_="edge start", marker_end="url(#head)")


def _free(
    q: int, places: list[tuple[float, float]], edges: list[tuple[int, int]], taken: list[float] | None = None
) -> float:
    """The direction at state q, an angle, in the middle of the widest gap between its arrows and those `taken`."""
    x, y = places[q]
    others = {p for edge in edges if q in edge for p in edge if p != q}
    angles = sorted([math.atan2(places[p][1] - y, places[p][0] - x) for p in others] + (taken or []))
    if not angles:
        return -math.pi / 2
    gaps = [(then - angle, angle) for angle, then in pairwise([*angles, angles[0] + 2 * math.pi])]
    width, angle = max(gaps)
    return angle + width / 2


def _around(a: tuple[float, float], r: float, angle: float) -> tuple[float, float]:
    return a[0] + r * math.cos(angle), a[1] + r * math.sin(angle)


def _edge(a: tuple[float, float], towards: tuple[float, float], r: float) -> tuple[float, float]:
    length = math.hypot(towards[0] - a[0], towards[1] - a[1]) or 1.0
    return a[0] + (towards[0] - a[0]) / length * r, a[1] + (towards[1] - a[1]) / length * r


def _arrowhead() -> Markup:
    head = tag("path", d="M0 0L8 4L0 8z", class_="arrowhead")
    marker = tag(
        "marker", head, id="head", viewBox="0 0 8 8", refX=5, refY=4, markerWidth=7, markerHeight=7, orient="auto"
    )
    return tag("defs", marker)
