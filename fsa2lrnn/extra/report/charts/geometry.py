"""States of the network in a plane, coloured by the automaton's state."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.display.markup import Markup, picture, tag, text
from fsa2lrnn.extra.report.charts.scales import fit
from fsa2lrnn.extra.report.drawing.automaton import hue
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import NEAR, Model

_SIZE = 280


def geometry(model: Model, machine: DrawnMachine) -> Markup:
    """Dots along the first letters, crosses after hundreds; a label at each state's centre."""
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
