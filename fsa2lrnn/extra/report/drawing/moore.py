"""Draw a Moore machine: as SVG text that needs no style sheet, or as PNG."""

from __future__ import annotations

import io
import shutil
import subprocess

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display.markup import visible
from fsa2lrnn.display.svg import Drawing, cut
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.extra.report.drawing.automaton import alone
from fsa2lrnn.extra.report.drawing.geometry import head
from fsa2lrnn.extra.report.drawing.layout import DRAWN, lay_out
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.optional import require

MOST_STATES, SECONDS = 500, 10.0  # limits for Graphviz
_INK, _SOFT, _FILL, _LINE, _PAPER = "#1c1e21", "#5b6068", "#eaf0fc", "#2457c5", "#ffffff"  # as in alone.css
_SCALE = 2.0  # pixels of the PNG per pixel of the drawing
_POINTS = 72 / 100  # points per pixel of the drawing


def draw(machine: MooreMachine) -> Drawing:
    """Return a drawing by Graphviz, or by `to_svg` if Graphviz fails, which may raise `BudgetExceeded`."""
    return Drawing(by_graphviz(machine) or to_svg(machine))


def drawn_alone(machine: MooreMachine) -> str | None:
    """Return a machine as the text of an SVG file, or None for more than `DRAWN` states."""
    return alone(drawable(machine))


def by_graphviz(machine: MooreMachine) -> str | None:
    """Return the SVG that Graphviz draws; None above 500 states, or if `dot` is missing, fails or takes over 10 s."""
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
    """Return a machine as the text of an SVG file. Raises `BudgetExceeded` for more than `DRAWN` states."""
    if (drawing := drawn_alone(machine)) is None:
        raise too_large(machine.n_states)
    return drawing


def to_png(machine: MooreMachine) -> bytes:
    """Return a machine as the bytes of a PNG file, and raise the errors of `png`."""
    return png(drawable(machine))


def drawable(machine: MooreMachine) -> DrawnMachine:
    """Return a machine as data for drawings, with text instead of symbols."""
    return DrawnMachine.of(machine.delta.tolist(), machine.outputs, machine.start, machine.alphabet, machine.labels)


def png(machine: DrawnMachine) -> bytes:
    """Return the drawing of a machine as the bytes of a PNG file.

    Raises `BudgetExceeded` for more than `DRAWN` states, `MissingPackage` if matplotlib is not installed.
    """
    require("matplotlib", "plot", "a PNG drawing", "write .svg, which needs none")
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, PathPatch, Polygon
    from matplotlib.path import Path
    from matplotlib.patheffects import withStroke

    layout = lay_out(machine)
    if layout is None:
        raise too_large(len(machine.states))
    width, height = layout.size
    figure = Figure(figsize=(width / 100, height / 100), facecolor=_PAPER)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0), aspect="equal")
    axes.set_axis_off()

    def write(x: float, y: float, text: str, size: float, colour: str = _INK) -> None:
        axes.text(
            x, y, visible(text, lines=False), fontsize=size * _POINTS, color=colour, ha="center", va="center",
            parse_math=False, path_effects=[withStroke(linewidth=4, foreground=_PAPER)] if colour == _INK else None,
        )  # fmt: skip

    pale = 0.3 if layout.is_dense else 1.0
    for curve, wide, alpha in [(layout.start, 2.0, 1.0), *((arrow.curve, 1.2, pale) for arrow in layout.arrows)]:
        path = Path(curve, [Path.MOVETO, *[Path.CURVE4] * 3])
        axes.add_patch(PathPatch(path, fill=False, edgecolor=_SOFT, linewidth=wide * _POINTS, alpha=alpha))
        axes.add_patch(Polygon(head(curve), color=_SOFT, alpha=alpha, linewidth=0))
    accepting, r = machine.accepting or [False] * len(layout.places), layout.radius
    for q, (x, y) in enumerate(layout.places.tolist()):
        style = {"facecolor": _FILL, "edgecolor": _LINE, "linewidth": 1.6 * _POINTS}
        for ring in [r, r - 3.5] if accepting[q] else [r]:
            axes.add_patch(Circle((x, y), ring, linestyle=(0, (4, 3)) if q == layout.folded else "solid", **style))
        name, output = machine.names[q], machine.outputs[q]
        is_single = machine.accepting is not None or name == output or r < 20
        write(x, y + (0 if is_single else -4), name, 12 if len(name) < 4 else 10)
        if not is_single:
            write(x, y + 9, cut(output, 6), 10, _SOFT)
    for arrow in layout.arrows:
        if arrow.label is not None and not layout.is_dense:
            x, y = arrow.label.tolist()
            write(x, y, arrow.letters, 12)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=100 * _SCALE, metadata={"Software": None})
    return data.getvalue()


def too_large(n_states: int) -> BudgetExceeded:
    """Return the error for a machine with more than `DRAWN` states."""
    return BudgetExceeded(
        f"the machine has {n_states:,} states and a drawing shows up to {DRAWN}: minimise it, or write .dot, or .html, "
        "where one goes through it letter by letter"
    )
