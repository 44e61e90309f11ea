"""The transition table of an automaton, for a page."""

from __future__ import annotations

from fsa2lrnn.display.markup import Markup, tag
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine


def transitions(machine: DrawnMachine) -> Markup:
    """A row a state: what it means, what it puts out, and where each letter leads."""
    has_labels = machine.names != machine.states
    titles = ["state", *(["meaning"] if has_labels else []), "output", *(f"after {a}" for a in machine.alphabet)]
    rows = []
    for q, name in enumerate(machine.names):
        cells = [*([machine.states[q]] if has_labels else []), machine.outputs[q]]
        cells += [machine.names[row[q]] for row in machine.delta]
        start = " (start)" if q == machine.start else ""
        rows.append(tag("tr", tag("th", name, start, scope="row"), *(tag("td", cell) for cell in cells)))
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in titles)))
    table = tag("table", head, tag("tbody", *rows), class_="tight")
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="Transitions")
