"""Draw a machine for papers and slides, with the matrices of its letters if asked for: as SVG, TikZ or PDF.

A figure is a list of marks, which each format writes in its own way. Long names of states and of letters stand whole in
a legend below the machine. A state has one hue, in its circle and at its rows and columns.
"""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass
from io import BytesIO
from xml.sax.saxutils import escape

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import visible
from fsa2lrnn.draw.automaton import DRAWN, LINE, lay_out, legend, with_legend
from fsa2lrnn.draw.drawn_machine import DrawnMachine, width
from fsa2lrnn.draw.geometry import head
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.optional import require

_TEXT = 343  # bp: the width of the text of LaTeX's article
MOST_STATES = 12  # with matrices: larger ones have no room for numbers
_CELL, _GAP = 24.0, 34.0  # pixels: of an entry, between matrices
_INK, _FAINT, _PAPER, _ONE = "#1c1e21", "#5b6068", "#ffffff", "#2457c5"
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "…": r"\ldots{}",
        "→": r"$\to$", **{c: f"\\{c}" for c in "&%$#_{}"}}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Mark:
    """A part of a figure: a circle, a rectangle, a Bézier curve, a filled polygon or a text.

    Args:
        kind: "circle" and "text" have one point, their centre, "cell" its two corners, "curve" 4 points, "head" 3.
        points: (k, 2), in pixels, y downwards.
        size: the radius of a circle, the font size of a text.
        line, fill: colours as #rrggbb; "" for none. A text has the colour `line`.
        text: the text; it begins at its point if `is_left`.
    """

    kind: str
    points: np.ndarray
    size: float = 0.0
    line: str = _INK
    fill: str = ""
    text: str = ""
    is_left: bool = False


@dataclass(frozen=True, eq=False)
class Figure:
    """A drawing of a machine, in pixels of 1/72 inch."""

    marks: list[Mark]
    size: tuple[float, float]

    def to_svg(self) -> str:
        """Return the text of an SVG file."""
        w, h = self.size
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:g} {h:g}" width="{w:g}" height="{h:g}"'
        body = "\n".join(map(_in_svg, self.marks))
        return (
            f'{opening} font-family="sans-serif">\n<rect width="100%" height="100%" fill="{_PAPER}"/>\n{body}\n</svg>\n'
        )

    def to_tikz(self) -> str:
        """Return a `tikzpicture`, for `\\input` in a document that loads tikz."""
        body, opening = "\n".join(map(_in_tikz, self.marks)), "% \\usepackage{tikz}\n"
        if self.size[0] > _TEXT:
            fit = r"\resizebox{\linewidth}{!}{\input{…}}"
            opening += f"% {self.size[0]:.0f}bp wide: where the text is narrower, {fit}\n"
        return f"{opening}\\begin{{tikzpicture}}[x=1bp, y=-1bp]\n{body}\n\\end{{tikzpicture}}\n"

    def to_pdf(self) -> bytes:
        """Return a PDF file with its fonts embedded as Type 42. Raises `MissingPackage` without matplotlib."""
        mpl = require("matplotlib", "plot", "a drawing as PDF")
        from matplotlib import figure, patches, path

        with mpl.rc_context({"pdf.fonttype": 42}):
            sheet = figure.Figure(figsize=(self.size[0] / 72, self.size[1] / 72))
            axes = sheet.add_axes((0, 0, 1, 1))
            axes.set(xlim=(0, self.size[0]), ylim=(self.size[1], 0))
            axes.axis("off")
            for mark in self.marks:
                style = {"edgecolor": mark.line or "none", "facecolor": mark.fill or "none", "linewidth": 1.2}
                a, b = mark.points[0], mark.points[-1]
                if mark.kind == "text":
                    at = "left" if mark.is_left else "center"
                    text = mark.text.replace("$", r"\$")
                    axes.text(a[0], a[1], text, size=mark.size, color=mark.line, ha=at, va="center_baseline")
                elif mark.kind == "circle":
                    axes.add_patch(patches.Circle(tuple(a), mark.size, **style))
                elif mark.kind == "cell":
                    axes.add_patch(patches.Rectangle(tuple(a), *(b - a), **style))
                elif mark.kind == "head":
                    axes.add_patch(patches.Polygon(mark.points, **style))
                else:
                    axes.add_patch(patches.PathPatch(path.Path(mark.points, [1, 4, 4, 4]), **style))
            file = BytesIO()
            sheet.savefig(file, format="pdf", metadata={"CreationDate": None})
        return file.getvalue()


def figure_of(machine: MooreMachine, matrices: bool = False) -> Figure:
    """Return the figure of a machine, if asked for with the matrix A of each letter: column from, row to.

    Raises `BudgetExceeded` for a machine of more than 60 states, or of more than 12 with matrices.

    >>> figure_of(MooreMachine([[1, 0], [0, 1]], [False, True], alphabet="ab"), matrices=True).to_svg().count("A(")
    2
    """
    limit = MOST_STATES if matrices else DRAWN
    drawn = DrawnMachine.of_machine(machine)
    layout = lay_out(drawn)
    if layout is None or machine.n_states > limit:
        what = f"{machine.n_states:,} states and a drawing{' with matrices' if matrices else ''}"
        remedy = "draw it without" if matrices else "write .dot, or .html, where one goes through it letter by letter"
        raise BudgetExceeded(f"the machine has {what} shows up to {limit}: minimise it, or {remedy}")
    curves = [*(arrow.curve for arrow in layout.arrows), layout.start]
    labels = [(arrow.label, arrow.letters) for arrow in layout.arrows if arrow.label is not None]
    marks = [Mark("curve", curve, line=_FAINT) for curve in curves]
    for at, letters in labels:  # on the arrows, which they interrupt
        half = np.array([width(letters) * 0.45, 7])
        marks.append(Mark("cell", np.stack([at - half, at + half]), line="", fill=_PAPER))
    marks += [Mark("head", np.array(head(curve)), line="", fill=_FAINT) for curve in curves]
    marks += [_text(at, letters) for at, letters in labels]
    for q, place in enumerate(layout.places):
        marks.append(
            Mark("circle", place[None], layout.radius, _hue(q, machine.n_states, 0.4), _hue(q, machine.n_states))
        )
        if drawn.accepting and drawn.accepting[q]:
            marks.append(Mark("circle", place[None], layout.radius - 3.5, _hue(q, machine.n_states, 0.4)))
        shows_output = not drawn.accepting and drawn.names[q] != drawn.outputs[q]
        marks.append(_text(place - np.array([0, 5 * shows_output]), drawn.names[q]))
        if shows_output:
            marks.append(_text(place + np.array([0, 8]), drawn.short_outputs[q], 9, _FAINT))
    lines = legend(drawn, layout)
    w, h = with_legend(layout.size, lines)
    for k, line in enumerate(lines):
        marks.append(Mark("text", np.array([[14.0, layout.size[1] + LINE * (k + 0.5)]]), 11, text=line, is_left=True))
    if matrices:
        beside, (right, bottom) = _matrices(machine, drawn, w + 20)
        marks, w, h = marks + beside, right, max(h, bottom)
    return Figure(marks, (w, h))


def _matrices(machine: MooreMachine, drawn: DrawnMachine, left: float) -> tuple[list[Mark], tuple[float, float]]:
    """Return the marks of the matrices, in rows of about as many as there are rows, and the corner below them."""
    n, k, marks = machine.n_states, len(machine.alphabet), list[Mark]()
    titles = [f"A({letter})" for letter in drawn.alphabet]
    step_x = max(n * _CELL, *map(width, titles)) + _GAP + 20
    step_y = n * _CELL + 2 * _GAP
    in_row = math.ceil(math.sqrt(k))
    for i, (title, row) in enumerate(zip(titles, machine.delta.tolist(), strict=True)):
        corner = np.array([left + 24 + i % in_row * step_x, 52 + i // in_row * step_y])
        marks.append(_text(corner + np.array([n * _CELL / 2, -36]), title, 13))
        for q in range(n):
            for at in corner + np.array([[(q + 0.5) * _CELL, -12], [-14, (q + 0.5) * _CELL]]):
                marks.append(Mark("circle", at[None], 9, "", _hue(q, n)))
                marks.append(_text(at, drawn.names[q], min(10, 24 / max(1, len(drawn.names[q])))))
            for p in range(n):
                at, is_one = corner + np.array([q, p]) * _CELL, row[q] == p
                marks.append(Mark("cell", np.stack([at, at + _CELL]), line="#a3a9b2", fill=_ONE if is_one else _PAPER))
                marks.append(_text(at + _CELL / 2, str(int(is_one)), 12, _PAPER if is_one else "#a3a9b2"))
    return marks, (left + in_row * step_x, 52 + -(-k // in_row) * step_y - _GAP)


def _text(at: np.ndarray, text: str, size: float = 12, colour: str = _INK) -> Mark:
    return Mark("text", at[None], size, colour, text=visible(text, lines=False))


def _hue(q: int, n: int, lightness: float = 0.92) -> str:
    """Return the colour of a state: hues at equal steps, as on the pages."""
    parts = colorsys.hls_to_rgb((q / max(n, 1) + 20 / 360) % 1, lightness, 0.65)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def in_tex(text: str) -> str:
    """Return a text with the characters that LaTeX reads otherwise replaced.

    >>> in_tex("50 % of a_1")
    '50 \\\\% of a\\\\_1'
    """
    return "".join(_TEX.get(c, c) for c in text)


def _in_svg(mark: Mark) -> str:
    (x, y), (x1, y1) = mark.points[0], mark.points[-1]
    style = f'fill="{mark.fill or "none"}" stroke="{mark.line or "none"}" stroke-width="1.2"'
    if mark.kind == "text":
        anchor = "start" if mark.is_left else "middle"
        return (
            f'<text x="{x:.1f}" y="{y + 0.35 * mark.size:.1f}" font-size="{mark.size:g}" text-anchor="{anchor}" '
            f'fill="{mark.line}">{escape(mark.text)}</text>'
        )
    if mark.kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{mark.size:g}" {style}/>'
    if mark.kind == "cell":
        return f'<rect x="{x:.1f}" y="{y:.1f}" width="{x1 - x:.1f}" height="{y1 - y:.1f}" {style}/>'
    points = [f"{a:.1f} {b:.1f}" for a, b in mark.points]
    path = f"M{points[0]} C{' '.join(points[1:])}" if mark.kind == "curve" else f"M{' L'.join(points)} Z"
    return f'<path d="{path}" {style}/>'


def _in_tikz(mark: Mark) -> str:
    def colour(name: str) -> str:
        red, green, blue = (int(name[i : i + 2], 16) for i in (1, 3, 5))
        return f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"

    points = [f"({x:.1f},{y:.1f})" for x, y in mark.points]
    if mark.kind == "text":
        anchor, text = "west" if mark.is_left else "center", in_tex(mark.text)
        font = f"\\fontsize{{{0.8 * mark.size:.3g}}}{{{mark.size:.3g}}}\\selectfont"
        style = f"anchor={anchor}, inner sep=0, text={colour(mark.line)}, font={font}"
        return f"\\node[{style}] at {points[0]} {{{text}}};"
    style = ", ".join(f"{key}={colour(value)}" for key, value in (("draw", mark.line), ("fill", mark.fill)) if value)
    if mark.kind == "circle":
        shape = f"{points[0]} circle[radius={mark.size:g}bp]"
    elif mark.kind == "cell":
        shape = f"{points[0]} rectangle {points[1]}"
    elif mark.kind == "curve":
        shape = f"{points[0]} .. controls {points[1]} and {points[2]} .. {points[3]}"
    else:
        shape = f"{' -- '.join(points)} -- cycle"
    return f"\\path[{style}] {shape};"
