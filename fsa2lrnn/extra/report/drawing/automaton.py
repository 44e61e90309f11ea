"""The automaton as SVG: one circle per state, and one arrow for all letters that lead from one state to another."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from fsa2lrnn.display.markup import Markup, cut, picture, standing_alone, tag, text
from fsa2lrnn.extra.report.drawing.geometry import head
from fsa2lrnn.extra.report.drawing.layout import DRAWN, Arrow, DrawingLayout, lay_out
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine

# The style sheet of pages: palettes and drawings.
LOOK = files("fsa2lrnn.extra.report.drawing").joinpath("look.css").read_text(encoding="utf-8")
_SMALL = 20.0  # radius below which a circle holds one line of text
_CROWDED = 200  # letters that what hovering says names


def hue(state: int, n: int) -> str:
    """Return a CSS style with the hue of state number `state` of `n`; the page sets the lightness."""
    return f"--h:{360 * state / max(n, 1) + 20:.0f}"


def automaton(machine: DrawnMachine, class_: str = "", kinds: Sequence[str] | None = None) -> Markup | None:
    """Return the drawing for a page with the style sheet `LOOK`, or None for more than `DRAWN` states.

    Each state has its own colour, or that of its output among `kinds`. Arrows are groups of class "arrow" whose
    data-edge is a pair of state numbers, as "0-2"; states are groups of class "place" with the attribute data-state.
    """
    layout = lay_out(machine)
    if layout is None:
        return None
    n = len(machine.states)
    drawn = [_arrow(machine, arrow, layout) for arrow in layout.arrows]
    drawn += curve_with_head(layout.start, "start", " start")
    tints = [hue(kinds.index(machine.outputs[q]), len(kinds)) if kinds else hue(q, n) for q in range(n)]
    drawn += [_state(machine, q, layout, tint) for q, tint in enumerate(tints)]
    said = f"The automaton: {n} states over {len(machine.alphabet)} letters"
    return picture(*layout.size, said, *drawn, class_=f"automaton {class_}".strip())


def notes(machine: DrawnMachine) -> list[str]:
    """Return sentences for the reader of the drawing: which sink is folded, and how many arrows have no label."""
    layout = lay_out(machine)
    if layout is None:
        return [f"It has {len(machine.states)} states; up to {DRAWN} are drawn."]
    said = [folded] if (folded := fold(machine)) else []
    missing = sum(layout.is_dense or arrow.label is None for arrow in layout.arrows)
    if missing:
        said.append(f"{missing} arrows have no room for their letters, which hovering tells.")
    return said


def fold(machine: DrawnMachine) -> str | None:
    """Return a sentence on the folded sink, or None if no sink is folded."""
    layout = lay_out(machine)
    if layout is None or layout.folded is None:
        return None
    return f"Letters that are not drawn lead to the sink {machine.names[layout.folded]}, which none leaves."


def alone(machine: DrawnMachine) -> str | None:
    """Return an SVG file that needs no style sheet, or None for more than `DRAWN` states."""
    drawn, layout = automaton(machine), lay_out(machine)
    return None if drawn is None or layout is None else standing_alone(drawn, layout.size)


def curve_with_head(curve: np.ndarray, title: str | None = None, class_: str = "") -> list[Markup]:
    """Return a chain of cubic curves, (3k + 1, 2), and its arrowhead."""
    first, *rest = (f"{x:.1f} {y:.1f}" for x, y in curve)
    pieces = "".join(f"C{' '.join(rest[i : i + 3])}" for i in range(0, len(rest), 3))
    line = tag("path", tag("title", title) if title else None, d=f"M{first}{pieces}", class_=f"edge{class_}")
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head(curve))
    return [line, tag("polygon", points=corners, class_=f"arrowhead{class_}")]


def _arrow(machine: DrawnMachine, arrow: Arrow, layout: DrawingLayout) -> Markup:
    q, then = arrow.edge
    names = [machine.alphabet[a] for a in machine.arrows[arrow.edge]]
    more = f" and {len(names) - _CROWDED} more" if len(names) > _CROWDED else ""
    said = f"{machine.states[q]} → {machine.states[then]}: {', '.join(names[:_CROWDED])}{more}"
    label = None
    if arrow.label is not None:
        x, y = arrow.label.tolist()
        label = text(x, y + 4, arrow.letters, class_="label halo shy" if layout.is_dense else "label halo")
    class_ = "arrow pale" if layout.is_dense else "arrow"
    return tag("g", *curve_with_head(arrow.curve, said), label, class_=class_, data_edge=f"{q}-{then}")


def _state(machine: DrawnMachine, q: int, layout: DrawingLayout, tint: str) -> Markup:
    (x, y), r = layout.places[q].tolist(), layout.radius
    name, output = machine.names[q], machine.outputs[q]
    accepting = machine.accepting
    said = tag("title", f"state {machine.states[q]}, output {output}")
    parts = [tag("circle", said, cx=x, cy=y, r=r, class_="node", style=tint)]
    if accepting is not None and accepting[q]:
        parts.append(tag("circle", cx=x, cy=y, r=r - 3.5, class_="node inner", style=tint))
    if accepting is not None or name == output or r < _SMALL:
        parts.append(text(x, y + 4, name, class_="label" if len(name) < 4 or r > _SMALL else "label tiny"))
    else:
        parts += [text(x, y + 1, name), text(x, y + 13, cut(output, 6), class_="label tiny faint")]
    folded = " folded" if q == layout.folded else ""
    return tag("g", *parts, class_=f"place{folded}", data_state=q)
