"""Draw an automaton as SVG, with a circle per state and one arrow for all letters from one state to another."""

from __future__ import annotations

from collections.abc import Sequence

from fsa2lrnn.display.markup import Markup
from fsa2lrnn.display.svg import cut, standing_alone
from fsa2lrnn.extra.report.drawing.geometry import head
from fsa2lrnn.extra.report.drawing.layout import DRAWN, Arrow, lay_out
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.render import render

_CROWDED = 200  # the most letters that a tooltip lists


def hue(state: int, n: int) -> str:
    """Return a CSS style with the hue of state number `state` of `n`; the style sheet sets the lightness."""
    return f"--h:{360 * state / max(n, 1) + 20:.0f}"


def automaton(machine: DrawnMachine, class_: str = "", kinds: Sequence[str] | None = None) -> Markup | None:
    """Return an SVG element for a page with the style sheet `pages/look.css`, or None for more than `DRAWN` states.

    Each state has its own colour, or that of its output among `kinds`. Arrows are groups of class "arrow" whose
    attribute data-edge is a pair of state numbers such as "0-2"; states are groups of class "place" with data-state.
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
            tints=[hue(kinds.index(machine.outputs[q]), len(kinds)) if kinds else hue(q, n) for q in range(n)],
        )
    )  # fmt: skip


def notes(machine: DrawnMachine) -> list[str]:
    """Return sentences that explain a drawing: which sink is folded, how many arrows have no label, or its absence."""
    layout = lay_out(machine)
    if layout is None:
        return [f"It has {len(machine.states)} states; up to {DRAWN} are drawn."]
    said = [folded] if (folded := fold(machine)) else []
    missing = sum(layout.is_dense or arrow.label is None for arrow in layout.arrows)
    if missing:
        said.append(f"{missing} arrows have no room for their letters, which hovering tells.")
    return said


def fold(machine: DrawnMachine) -> str | None:
    """Return a sentence that names the sink whose arrows are not drawn, or None if all arrows are drawn."""
    layout = lay_out(machine)
    if layout is None or layout.folded is None:
        return None
    return f"Letters that are not drawn lead to the sink {machine.names[layout.folded]}, which none leaves."


def alone(machine: DrawnMachine) -> str | None:
    """Return a drawing as the text of an SVG file that needs no style sheet, or None for more than `DRAWN` states."""
    drawn, layout = automaton(machine), lay_out(machine)
    return None if drawn is None or layout is None else standing_alone(drawn, layout.size)
