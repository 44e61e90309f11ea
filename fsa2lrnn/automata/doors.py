"""The algorithms and formats that methods of `MooreMachine` call, as plain functions.

`machine` cannot import them without an import cycle, so `automata/__init__.py` passes this module to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from fsa2lrnn import registry
from fsa2lrnn.automata.formats import read_source
from fsa2lrnn.automata.language import combine_acceptors, complement, equivalent, minimise
from fsa2lrnn.automata.machine import MooreMachine

if TYPE_CHECKING:
    import networkx as nx
    from automata.fa.dfa import DFA

    from fsa2lrnn.display.svg import Drawing


# These functions import optional packages, or readers that are rarely needed, when called.
def from_automata(automaton: Any) -> MooreMachine:
    """`formats.automata_lib.from_automata`."""
    from fsa2lrnn.automata.formats import automata_lib

    return automata_lib.from_automata(automaton)


def from_regex(expression: str, alphabet: Iterable[Hashable] | None) -> MooreMachine:
    """`formats.regex.from_regex`."""
    from fsa2lrnn.automata.formats import regex

    return regex.from_regex(expression, alphabet)


def to_automata(machine: MooreMachine) -> DFA:
    """`formats.automata_lib.to_automata`."""
    from fsa2lrnn.automata.formats import automata_lib

    return automata_lib.to_automata(machine)


def from_networkx(graph: nx.MultiDiGraph[Any], **options: Any) -> MooreMachine:
    """`formats.networkx_graph.from_networkx`."""
    from fsa2lrnn.automata.formats import networkx_graph

    return networkx_graph.from_networkx(graph, **options)


def to_networkx(machine: MooreMachine) -> nx.MultiDiGraph[Any]:
    """`formats.networkx_graph.to_networkx`."""
    from fsa2lrnn.automata.formats import networkx_graph

    return networkx_graph.to_networkx(machine)


def to_dot(machine: MooreMachine) -> str:
    """`formats.dot.to_dot`."""
    from fsa2lrnn.automata.formats import dot

    return dot.to_dot(machine)


def drawn_alone(machine: MooreMachine) -> str | None:
    """Return an SVG drawing, None for many states or without the extra "report"."""
    drawing = registry.find("report.moore")
    return None if drawing is None else drawing.drawn_alone(machine)


def to_svg(machine: MooreMachine) -> str:
    """Return an SVG drawing."""
    return registry.require("report.moore", "a drawing").to_svg(machine)


def to_png(machine: MooreMachine) -> bytes:
    """Return a PNG drawing."""
    return registry.require("report.moore", "a drawing").to_png(machine)


def draw(machine: MooreMachine) -> Drawing:
    """Return a drawing that a notebook shows."""
    return registry.require("report.moore", "a drawing").draw(machine)


def to_json(machine: MooreMachine) -> str:
    """`formats.json_file.to_json`."""
    from fsa2lrnn.automata.formats import json_file

    return json_file.to_json(machine)


__all__ = [
    "combine_acceptors",
    "complement",
    "draw",
    "drawn_alone",
    "equivalent",
    "from_automata",
    "from_networkx",
    "from_regex",
    "minimise",
    "read_source",
    "to_automata",
    "to_dot",
    "to_json",
    "to_networkx",
    "to_png",
    "to_svg",
]
