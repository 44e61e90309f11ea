"""Draw a Moore machine: as SVG text that stands alone, or as PNG."""

from __future__ import annotations

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.report.drawing.automaton import alone
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.drawing.raster import png, too_large


def drawn_alone(machine: MooreMachine) -> str | None:
    """Return the machine as an SVG file, None for more states than are drawn."""
    return alone(drawable(machine))


def to_svg(machine: MooreMachine) -> str:
    """Return the machine as an SVG file. Raises `BudgetExceeded` for more states than are drawn."""
    if (drawing := drawn_alone(machine)) is None:
        raise too_large(drawable(machine))
    return drawing


def to_png(machine: MooreMachine) -> bytes:
    """Return the machine as a PNG file. Raises `BudgetExceeded` for more states than are drawn."""
    return png(drawable(machine))


def drawable(machine: MooreMachine) -> DrawnMachine:
    """Return the machine with text in the place of symbols."""
    return DrawnMachine.of(machine.delta.tolist(), machine.outputs, machine.start, machine.alphabet, machine.labels)
