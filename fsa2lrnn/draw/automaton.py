"""Draw an automaton as SVG: a circle per state, and one arrow for all letters that lead from one state to another."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from fsa2lrnn.display import Markup
from fsa2lrnn.draw.drawn_machine import DrawnMachine
from fsa2lrnn.draw.geometry import head
from fsa2lrnn.draw.layout import DRAWN, Arrow, lay_out
from fsa2lrnn.draw.svg import Drawing, cut, render, standing_alone
from fsa2lrnn.errors import BudgetExceeded

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine

MOST_STATES, SECONDS = 500, 10.0  # limits for Graphviz
_CROWDED = 200  # the most letters that a tooltip lists


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
    drawn, layout = automaton(machine), lay_out(machine)
    return None if drawn is None or layout is None else standing_alone(drawn, layout.size)


def automaton(machine: DrawnMachine, class_: str = "") -> Markup | None:
    """Return an SVG element for a page with the style sheet `pages/look.css`, or None for more than `DRAWN` states.

    Each state has its own hue, whose lightness the style sheet sets. Arrows are groups of class "arrow" whose attribute
    data-edge is a pair of state numbers such as "0-2"; states are groups of class "place" with data-state.
    """
    layout = lay_out(machine)
    if layout is None:
        return None
    n = len(machine.states)

    def letters_of(arrow: Arrow) -> str:
        q, then = (machine.states[end] for end in arrow.edge)
        names = [machine.alphabet[a] for a in machine.arrows[arrow.edge]]
        more = f" and {len(names) - _CROWDED} more" if len(names) > _CROWDED else ""
        return f"{q} → {then}: {', '.join(names[:_CROWDED])}{more}"

    return Markup(
        render(
            "automaton.svg", layout=layout, machine=machine, class_=f" {class_}".rstrip(), arrowhead=head, cut=cut,
            letters_of=letters_of, said=f"The automaton: {n} states over {len(machine.alphabet)} letters",
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
    return said
