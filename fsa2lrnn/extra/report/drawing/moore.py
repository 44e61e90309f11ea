"""Draw a Moore machine: as SVG text that stands alone, or as PNG."""

from __future__ import annotations

import shutil
import subprocess

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display.svg import Drawing
from fsa2lrnn.extra.report.drawing.automaton import alone
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.drawing.raster import png, too_large

MOST_STATES, SECONDS = 500, 10.0  # that Graphviz is given


def draw(machine: MooreMachine) -> Drawing:
    """Return a drawing by Graphviz where `dot` is installed, else by `to_svg`, which may raise `BudgetExceeded`."""
    return Drawing(by_graphviz(machine) or to_svg(machine))


def drawn_alone(machine: MooreMachine) -> str | None:
    """Return the machine as an SVG file, None for more states than are drawn."""
    return alone(drawable(machine))


def by_graphviz(machine: MooreMachine) -> str | None:
    """Return the SVG that Graphviz draws, None without `dot` or for a machine that takes it more than ten seconds."""
    if (program := shutil.which("dot")) is None or machine.n_states > MOST_STATES:
        return None
    try:
        done = subprocess.run([program, "-Tsvg"], input=machine.to_dot(), capture_output=True, text=True,
                              encoding="utf-8", timeout=SECONDS)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    start = done.stdout.find("<svg")
    return done.stdout[start:] if done.returncode == 0 and start >= 0 else None


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
