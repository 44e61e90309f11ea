"""Convert machines from and to networkx graphs: a `MultiDiGraph` (or `DiGraph`) whose attributes define a machine.

graph   `alphabet` (the letters in order; by default those of the edges, in natural order)
node    `start` (true at the start state), `accepting` (true or false) or `output` (Moore), `label` (for display); also
        `is_start` and `is_final`, as pyformlang has them, whose `starting_…` nodes are no states
edge    `letter`, or `letters` for several, or else the `label` is the letter; `output` (Mealy). None is a letter;
        `graph.EPSILON`, and `ε`, `eps` and the like where the alphabet does not declare them, mean no letter

Nodes and letters are any hashables and remain unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Any

import networkx as nx

from fsa2lrnn.automata.formats.assemble import to_machine
from fsa2lrnn.automata.formats.foreign import foreign
from fsa2lrnn.automata.formats.graph import ABSENT, EPSILON, Edge, Kind, LabelledGraph, Problems, State, is_epsilon
from fsa2lrnn.automata.language import Completion
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat


def from_networkx(
    graph: nx.DiGraph[Any],
    *,
    completion: Completion | None = None,
    start: Hashable = ABSENT,
    alphabet: Iterable[Hashable] | None = None,
) -> MooreMachine:
    """Return the machine of a directed graph with the attributes that this module lists.

    It is a Mealy machine if edges have outputs, a Moore machine if only nodes have, else an acceptor.

    Args:
        completion: the treatment of missing transitions (`assemble.to_machine`).
        start: the start node; by default that marked in the graph.
        alphabet: the letters in order; by default those that the graph declares.

    Raises:
        UnsupportedFormat: for an undirected graph, and edges whose `label` is a probability, formula or the like.
        InvalidMachine: with every problem of the graph.

    >>> g = nx.MultiDiGraph()
    >>> g.add_node("even", start=True, accepting=True)
    >>> _ = g.add_edge("even", "odd", letter="a"), g.add_edge("odd", "even", letter="a")
    >>> from_networkx(g).transduce("aaa")
    [False, True, False]
    """
    if not isinstance(graph, nx.DiGraph):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnsupportedFormat(
            f"{type(graph).__name__} is not a directed graph of networkx: give a MultiDiGraph, or a DiGraph"
        )
    problems = Problems("the networkx graph")
    # Arguments take precedence over what the graph declares.
    declared = graph.graph.get("alphabet") if alphabet is None else alphabet
    declared = None if declared is None else tuple(declared)
    arrows = {node for node, values in graph.nodes(data=True) if _is_arrow(node, values)}
    edges: list[Edge] = []
    for tail, head, values in graph.edges(data=True):
        if tail in arrows:
            continue
        letters = _letters(values)
        if letters is None:
            problems.add(f"the edge {tail!r} -> {head!r} has no letter: give it the attribute letter=…")
        letters = [
            EPSILON if letter not in (declared or ()) and is_epsilon(letter) else letter for letter in letters or ()
        ]
        edges += [Edge(tail, letter, head, values.get("output", ABSENT)) for letter in letters]
    if declared is None and (refused := foreign(e.letter for e in edges if isinstance(e.letter, str))) is not None:
        raise UnsupportedFormat(
            f"{problems.origin}: the letter {refused[0][:80]!r} is {refused[1]}, and a machine has letters alone: "
            "write each letter out, or declare alphabet=… if it is one letter"
        )
    if quoted := [e.letter for e in edges if isinstance(e.letter, str) and re.fullmatch(r'".+"', e.letter, re.DOTALL)]:
        problems.add(f"letter {quoted[0]!r} is in quotes, which networkx leaves in labels of DOT files: remove them")
    starts = [node for node, values in graph.nodes(data=True) if _is_true(values, "start", "is_start")]
    starts = starts if start is ABSENT else [start]
    states = tuple(
        State(node, values.get("label", node), _is_true(values, "accepting", "is_final"), values.get("output", ABSENT))
        for node, values in graph.nodes(data=True)
        if node not in arrows
    )
    read = LabelledGraph(
        _kind(states, edges),
        states,
        tuple((node, None) for node in starts),
        tuple(edges),
        declared,
        problems.origin,
        "give one node the attribute start=True, or pass start=…",
        problems=problems.all,
    )
    return to_machine(read, completion)


def to_networkx(machine: MooreMachine) -> nx.MultiDiGraph[Any]:
    """Return a graph with a node per state (its number) and an edge per transition, which `from_networkx` reads back.

    >>> sorted(to_networkx(MooreMachine([[1, 0]], "xy", alphabet="a")).edges(data="letter"))
    [(0, 1, 'a'), (1, 0, 'a')]
    """
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(alphabet=machine.alphabet)
    for q, output in enumerate(machine.outputs):
        label = {} if machine.labels is None else {"label": machine.labels[q]}
        graph.add_node(q, output=output, **label)
    graph.nodes[machine.start]["start"] = True
    for a, letter in enumerate(machine.alphabet):
        graph.add_edges_from((q, int(machine.delta[a, q]), {"letter": letter}) for q in range(machine.n_states))
    return graph


def _is_true(values: dict[str, Any], *names: str) -> bool:
    """Return whether an attribute is true; graphs read from files have it as text."""
    return any(bool(v) and str(v).strip('"').lower() not in ("false", "0", "no") for v in map(values.get, names))


def _is_arrow(node: Hashable, values: dict[str, Any]) -> bool:
    return isinstance(node, str) and node.startswith("starting_") and not {"is_start", "is_final"} & values.keys()


def _letters(values: dict[str, Any]) -> tuple[Hashable, ...] | None:
    if "letters" in values:
        return tuple(values["letters"])
    for name in ("letter", "label"):
        if name in values:
            return (values[name],)
    return None


def _kind(states: tuple[State, ...], edges: list[Edge]) -> Kind:
    if any(edge.output is not ABSENT for edge in edges):
        return "mealy"
    return "moore" if any(state.output is not ABSENT for state in states) else "acceptor"
