"""Draw an automaton as SVG: a circle per state, and one arrow for all letters that lead from one state to another.

States are placed on an ellipse, or in columns by the distance from the start. A sink to which most arrows lead is
folded: these arrows are not drawn, and every letter that is not drawn leads there. If there are too many arrows, the
drawing is dense: arrows are pale and without labels.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fsa2lrnn.display import Markup
from fsa2lrnn.draw.drawn_machine import DrawnMachine
from fsa2lrnn.draw.geometry import head
from fsa2lrnn.draw.svg import Drawing, render, standing_alone
from fsa2lrnn.errors import BudgetExceeded, shortened

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
import math
from dataclasses import dataclass
from functools import lru_cache

import networkx as nx
import numpy as np

from fsa2lrnn.display import visible
from fsa2lrnn.draw import geometry
from fsa2lrnn.draw.drawn_machine import fitted, letters_text, width
from fsa2lrnn.draw.geometry import Edge, boxes_around, points_of

MOST_STATES, SECONDS = 500, 10.0  # limits for Graphviz
_LISTED = 200  # the most letters that a tooltip lists
_LABEL = 16  # the most characters of a label
_WHOLE = 300  # the most characters of a text in a legend


def draw(machine: MooreMachine) -> Drawing:
    """Return a drawing by Graphviz, or by `to_svg` if Graphviz fails, which may raise `BudgetExceeded`."""
    return Drawing(by_graphviz(machine) or to_svg(machine))


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
    if (drawing := svg_file(DrawnMachine.of_machine(machine))) is None:
        raise BudgetExceeded(
            f"the machine has {machine.n_states:,} states and a drawing shows up to {DRAWN}: minimise it, or write "
            ".dot, or .html, where one goes through it letter by letter"
        )
    return drawing


def svg_file(machine: DrawnMachine) -> str | None:
    """Return a drawing as the text of an SVG file that needs no style sheet, or None for more than `DRAWN` states."""
    if (layout := lay_out(machine)) is None:
        return None
    lines = legend(machine, layout)
    return standing_alone(automaton(machine, lines=lines) or Markup(), with_legend(layout.size, lines))


def automaton(machine: DrawnMachine, class_: str = "", lines: Sequence[str] = ()) -> Markup | None:
    """Return an SVG element for a page with the style sheet `pages/look.css`, or None for more than `DRAWN` states.

    `lines` are those of a legend below the drawing.

    Each state has its own hue, whose lightness the style sheet sets. Arrows are groups of class "arrow" whose attribute
    data-edge is a pair of state numbers such as "0-2"; states are groups of class "place" with data-state.
    """
    layout = lay_out(machine)
    if layout is None:
        return None
    n, size = len(machine.states), with_legend(layout.size, lines)

    def letters_of(arrow: Arrow) -> str:
        q, then = (machine.states[end] for end in arrow.edge)
        names = [machine.alphabet[a] for a in machine.arrows[arrow.edge]]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return f"{q} → {then}: {', '.join(names[:_LISTED])}{more}"

    return Markup(
        render(
            "automaton.svg", layout=layout, machine=machine, class_=f" {class_}".rstrip(), arrowhead=head,
            lines=[(layout.size[1] + LINE * (k + 0.7), line) for k, line in enumerate(lines)], letters_of=letters_of,
            size=size, said=f"The automaton: {n} states over {len(machine.alphabet)} letters",
            tints=[f"--h:{360 * q / max(n, 1) + 20:.0f}" for q in range(n)],
        )
    )  # fmt: skip


def notes(machine: DrawnMachine) -> list[str]:
    """Return sentences that explain a drawing: which sink is folded, how many arrows have no label, or its absence."""
    layout = lay_out(machine)
    if layout is None:
        return [f"It has {len(machine.states)} states; up to {DRAWN} are drawn."]
    said = list[str]()
    if layout.folded is not None:
        said.append(f"Letters that are not drawn lead to the sink {machine.names[layout.folded]}, which none leaves.")
    missing = sum(layout.is_dense or arrow.label is None for arrow in layout.arrows)
    if missing:
        said.append(f"{missing} arrows have no room for their letters, which hovering tells.")
    return [*said, *(f"{line}." for line in _cut_texts(machine, layout))]


def with_legend(size: tuple[float, float], lines: Sequence[str]) -> tuple[float, float]:
    """Return the size of a drawing with a legend of these lines below it, in pixels."""
    return max(size[0], *(width(line) + 2 * _MARGIN for line in lines), 0.0), size[1] + LINE * len(lines)


def legend(machine: DrawnMachine, layout: DrawingLayout) -> list[str]:
    """Return the lines that say in full what the circles and arrows of a drawing have no room for."""
    names = zip(machine.names, machine.states, strict=True)
    lines = [f"{name}: {state}" for name, state in names if name != state]
    if layout.folded is not None:
        lines.append(f"letters that are not drawn lead to {machine.names[layout.folded]}")
    return lines + _cut_texts(machine, layout)


def _cut_texts(machine: DrawnMachine, layout: DrawingLayout) -> list[str]:
    """Return a line for each label of a drawing that is cut."""
    drawn = [(arrow.letters, arrow.text) for arrow in layout.arrows if arrow.label is not None and not layout.is_dense]
    if not machine.accepting:
        drawn += zip(machine.short_outputs, machine.outputs, strict=True)
    return [f"{label}: {shortened(text, _WHOLE)}" for label, text in dict(drawn).items() if label != text]


DRAWN = 60  # the most states of a drawing
_ON_CIRCLE = 12  # the most states of a strongly connected automaton that is drawn on an ellipse
_FOLDED = 3  # the fewest arrows to a folded sink
_DENSE = 3.2  # arrows per state above which columns are dense
_CROWDED = 3.5  # arrows per state, with loops, above which labels are near the beginnings of their arrows
_SPARSE = 1.5  # arrows per state above which columns and rows are farther apart
_FEW = 12  # the most states with large circles
_MARGIN, LINE = 14.0, 17.0  # pixels; the latter of a line of a legend
_SWEEPS = 8


@dataclass(frozen=True, eq=False)
class Arrow:
    """The arrow of all letters from one state to another: its curve (4, 2) and the place (2,) of its label, or None.

    `letters` is the label, and `text` is the same in full.
    """

    edge: Edge
    letters: str
    text: str
    curve: np.ndarray
    label: np.ndarray | None


@dataclass(frozen=True, eq=False)
class DrawingLayout:
    """The geometry of a drawing, in pixels.

    Args:
        size: the width and the height.
        places: the centre of each state's circle, (n, 2).
        radius: the radius of all circles.
        arrows: the drawn arrows.
        start: the arrow to the start, (4, 2).
        folded: the number of the folded sink, None if no sink is folded.
        is_dense: whether there are so many arrows that labels only avoid other labels of the same state.
    """

    size: tuple[float, float]
    places: np.ndarray
    radius: float
    arrows: list[Arrow]
    start: np.ndarray
    folded: int | None
    is_dense: bool


def lay_out(machine: DrawnMachine) -> DrawingLayout | None:
    """Return the geometry of the drawing of a machine, or None for more than `DRAWN` states."""
    if len(machine.states) > DRAWN:
        return None
    rows = tuple(map(tuple, machine.delta))
    return _lay_out(rows, machine.start, tuple(visible(letter, lines=False) for letter in machine.alphabet))


@lru_cache(maxsize=64)
def _lay_out(delta: tuple[tuple[int, ...], ...], start: int, alphabet: tuple[str, ...]) -> DrawingLayout:
    n = len(delta[0])
    arrows = DrawnMachine([""] * n, list(alphabet), [""] * n, [list(row) for row in delta], start).arrows
    folded = _sink(n, arrows, start)
    shown = [q for q in range(n) if q != folded]
    leads_on = all(then >= 0 for row in delta for then in row)
    texts = {edge: letters_text(by, alphabet, leads_on) for edge, by in arrows.items() if edge[1] != folded}
    labels_of = fitted(texts.values(), _LABEL)
    letters = {edge: labels_of[text] for edge, text in texts.items()}
    graph = nx.DiGraph([edge for edge in letters if edge[0] != edge[1]])
    graph.add_nodes_from(shown)
    radius = 22.0 if n <= _FEW else 16.0
    is_circle = len(shown) <= _ON_CIRCLE and nx.is_strongly_connected(graph)
    is_dense = not is_circle and graph.size() > _DENSE * len(shown) and len(shown) > _FEW
    if is_circle:
        spots = _circle(graph, start, radius)
    else:
        widths = {edge: 0.0 if is_dense else width(text) for edge, text in letters.items()}
        spread = 1.0 if is_dense else 1 + min(max(0.0, graph.size() / len(shown) - _SPARSE), 1.5)  # for labels
        spots = _columns(graph, start, 2 * radius, widths, 86.0 if is_dense else 46.0 * spread, 26.0 * spread)
    right, bottom = np.max(list(spots.values()), axis=0)
    aside = np.array([right, bottom + 3.2 * radius + 18])
    places = np.stack([spots.get(q, aside) for q in range(n)])
    curves = {(q, then): geometry.arrow(q, then, places, radius, graph.has_edge(then, q)) for q, then in graph.edges}
    outwards = dict.fromkeys(shown, -math.pi / 2)
    if is_circle and len(shown) > 2:
        middle = np.mean(list(spots.values()), axis=0)
        outwards = {q: math.atan2(*(spots[q] - middle)[::-1]) for q in shown}
    used = {q: [] for q in shown}
    for (q, then), curve in curves.items():
        used[q].append(math.atan2(*(curve[1] - curve[0])[::-1]))
        used[then].append(math.atan2(*(curve[2] - curve[3])[::-1]))
    entry_angle = geometry.free_direction(used[start], outwards[start] if is_circle and len(shown) > 1 else math.pi)
    used[start].append(entry_angle)
    entry = geometry.entry(places[start], radius, entry_angle)
    for q in shown:
        if (q, q) in letters:
            curves[q, q] = geometry.loop(places[q], radius, geometry.free_direction(used[q], outwards[q]))
    circles = boxes_around(places, 2 * radius + 2, 2 * radius + 2)
    labels = _labels(curves, letters, circles, points_of(entry), is_dense)
    return _shifted(places, radius, letters, texts, curves, labels, entry, folded, is_dense)


def _sink(n: int, arrows: dict[Edge, list[int]], start: int) -> int | None:
    leaves = {q for q, then in arrows if q != then}
    into = {q: sum(edge[1] == q != edge[0] for edge in arrows) for q in range(n) if q not in leaves and q != start}
    most = max(into, key=lambda q: (into[q], -q), default=None)
    return most if most is not None and into[most] >= _FOLDED else None


def _circle(graph: nx.DiGraph, start: int, radius: float) -> dict[int, np.ndarray]:
    """Return a place on an ellipse for each state, in depth-first order, so that states of a cycle are neighbours."""
    n = len(graph)
    room = 2 * radius + (44 if graph.size() <= 2.5 * n else 84)
    reach = max(0.0 if n == 1 else 62.0, n * room / math.tau)
    turns = {q: math.tau * i / n for i, q in enumerate(nx.dfs_preorder_nodes(graph, start))}
    return {q: reach * np.array([1.25 * math.sin(turn), -math.cos(turn)]) for q, turn in turns.items()}


def _columns(
    graph: nx.DiGraph, start: int, size: float, widths: dict[Edge, float], gap: float, row_gap: float
) -> dict[int, np.ndarray]:
    tallest = max(8, math.ceil(math.sqrt(1.8 * len(graph))))
    steps = nx.single_source_shortest_path_length(graph, start)
    columns = []
    for step in range(max(steps.values()) + 1):
        here = [q for q in sorted(graph) if steps.get(q, 0) == step]
        parts = -(-len(here) // tallest)
        columns += [part.tolist() for part in np.array_split(np.array(here), parts)]
    columns = ordered(columns, graph)
    column_of = {q: c for c, column in enumerate(columns) for q in column}
    spots, x = dict[int, np.ndarray](), 0.0
    for c, column in enumerate(columns):
        for i, q in enumerate(column):
            spots[q] = np.array([x, (size + row_gap) * (i - (len(column) - 1) / 2)])
        beside = [widths[e] for e in graph.edges if {column_of[e[0]], column_of[e[1]]} <= {c, c + 1}]
        x += size + gap + max(beside, default=0.0)
    return spots


def ordered(columns: list[list[int]], graph: nx.DiGraph) -> list[list[int]]:
    """Return columns of nodes, each sorted so that few edges cross, by the sweeps of Sugiyama et al. (1981)."""
    best, fewest = columns, _crossings(columns, graph)
    neighbours = {q: [*graph.predecessors(q), *graph.successors(q)] for q in graph}
    for sweep in range(_SWEEPS):
        columns = [list(column) for column in columns]
        share = {q: (i + 0.5) / len(column) for column in columns for i, q in enumerate(column)}
        for column in columns if sweep % 2 == 0 else reversed(columns):
            own = set(column)
            means = {q: np.mean([share[m] for m in neighbours[q] if m not in own] or [share[q]]) for q in column}
            column.sort(key=means.__getitem__)
            share |= {q: (i + 0.5) / len(column) for i, q in enumerate(column)}
        if (found := _crossings(columns, graph)) < fewest:
            best, fewest = columns, found
    return best


def _crossings(columns: list[list[int]], graph: nx.DiGraph) -> int:
    spot = {q: (c, i) for c, column in enumerate(columns) for i, q in enumerate(column)}
    ends = np.array([sorted((spot[q], spot[then])) for q, then in graph.edges]).reshape(-1, 2, 2)
    between, rows = ends[:, :, 0], ends[:, :, 1]
    turned = (rows[:, None] - rows[None]).prod(-1) < 0
    return int((turned & (between[:, None] == between[None]).all(-1)).sum())


def _labels(
    curves: dict[Edge, np.ndarray], letters: dict[Edge, str], circles: np.ndarray, entry: np.ndarray, is_dense: bool
) -> dict[Edge, np.ndarray]:
    widths, n = {edge: width(text) for edge, text in letters.items()}, 1 + max((q for q, _ in curves), default=0)
    if not is_dense:
        return geometry.place_labels(curves, widths, circles, len(curves) > _CROWDED * n, entry)
    found: dict[Edge, np.ndarray] = {}
    for q in range(n):
        own = {edge: curve for edge, curve in curves.items() if edge[0] == q}
        found |= geometry.place_labels(own, widths, circles, True, entry)
    return found


def _shifted(
    places: np.ndarray,
    radius: float,
    letters: dict[Edge, str],
    texts: dict[Edge, str],
    curves: dict[Edge, np.ndarray],
    labels: dict[Edge, np.ndarray],
    entry: np.ndarray,
    folded: int | None,
    is_dense: bool,
) -> DrawingLayout:
    """Return the layout moved so that its upper left corner is 0, with a margin around all parts."""
    parts = [boxes_around(places, 2 * radius, 2 * radius), np.tile(points_of(entry), 2)]
    parts += [np.tile(points_of(curve), 2) for curve in curves.values()]
    parts += [boxes_around(label[None], width(letters[edge]), 16) for edge, label in labels.items()]
    boxes = np.concatenate(parts)
    corner = boxes[:, :2].min(0) - _MARGIN
    arrows = [
        Arrow(edge, label, texts[edge], curves[edge] - corner, labels[edge] - corner if edge in labels else None)
        for edge, label in letters.items()
    ]
    right, bottom = np.ceil(boxes[:, 2:].max(0) + _MARGIN - corner).tolist()
    return DrawingLayout((right, bottom), places - corner, radius, arrows, entry - corner, folded, is_dense)
