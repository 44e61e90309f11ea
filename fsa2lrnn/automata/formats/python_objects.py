"""Convert machines from and to objects of other packages: networkx graphs, and the automata of automata-lib.

The attributes of a `MultiDiGraph` (or `DiGraph`) define a machine:

graph   `alphabet` (the letters in order; by default those of the edges, in natural order)
node    `start` (true at the start state), `accepting` (true or false) or `output` (Moore), `label` (for display); also
        `is_start` and `is_final`, as pyformlang has them, whose `starting_…` nodes are no states
edge    `letter`, or `letters` for several, or else the `label` is the letter; `output` (Mealy). None is a letter;
        `graph.EPSILON`, and `ε`, `eps` and the like where the alphabet does not declare them, mean no letter

Nodes and letters are any hashables and remain unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import networkx as nx
from automata.fa.dfa import DFA
from automata.fa.gnfa import GNFA
from automata.fa.nfa import NFA

from fsa2lrnn.automata.formats.foreign import foreign
from fsa2lrnn.automata.formats.graph import (
    ABSENT,
    EPSILON,
    Edge,
    Kind,
    LabelledGraph,
    Problems,
    State,
    in_natural_order,
    is_epsilon,
    to_machine,
)
from fsa2lrnn.automata.formats.regex import from_regex
from fsa2lrnn.automata.language import Completion
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat


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
        completion: the treatment of missing transitions (`graph.to_machine`).
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


def from_automata(
    automaton: DFA | NFA | GNFA, alphabet: Iterable[Hashable] | None = None, completion: Completion | None = None
) -> MooreMachine:
    """Return a machine from an automata-lib DFA (complete or partial), NFA or GNFA.

    Args:
        alphabet: the order of the letters, a permutation of `automaton.input_symbols`; natural order by default.
        completion: the treatment of missing transitions (`graph.to_machine`); a rejecting sink by default.

    States are numbered in natural order. An NFA is determinised, and a GNFA is read through its regular expression.

    Raises:
        UnsupportedFormat: for another type, such as a pushdown automaton or a Turing machine.
        InvalidMachine: if `alphabet` is not a permutation, the alphabet is empty, or there are accepting states but
            none is reachable.

    >>> dfa = DFA(states={"p"}, input_symbols={"a", "b"}, transitions={"p": {"a": "p"}}, initial_state="p",
    ...           final_states={"p"}, allow_partial=True)
    >>> from_automata(dfa).transduce("aab")
    [True, True, False]
    """
    if not isinstance(automaton, DFA | NFA | GNFA):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnsupportedFormat(
            f"{type(automaton).__name__} is not a finite automaton of automata-lib: give a DFA, an NFA or a GNFA"
        )
    letters = in_natural_order(automaton.input_symbols)
    if alphabet is not None:
        chosen = tuple(alphabet)
        if len(chosen) != len(letters) or set(chosen) != set(letters):
            raise InvalidMachine(
                f"alphabet {chosen} is not a permutation of the input symbols {letters}: list each of them once"
            )
        letters = chosen
    if isinstance(automaton, GNFA):
        if signs := [letter for letter in letters if str(letter) in r"()[]{}\*+?|^$.&ε"]:
            raise InvalidMachine(
                f"letter {signs[0]!r} is a sign of regular expressions, which a GNFA does not mark: rename it, or give "
                "the DFA or NFA that the GNFA was made from"
            )
        return from_regex(automaton.to_regex(), alphabet=letters)
    # An NFA has a set of targets for each letter, and the letter "" for epsilon.
    states = in_natural_order(automaton.states)
    transitions: Mapping[Any, Mapping[str, Any]] = automaton.transitions
    edges = tuple(
        Edge(source, EPSILON if letter == "" else letter, target)
        for source in states
        for letter, targets in transitions.get(source, {}).items()
        for target in ([targets] if isinstance(automaton, DFA) else in_natural_order(targets))
    )
    graph = LabelledGraph(
        "acceptor",
        tuple(State(q, q, q in automaton.final_states) for q in states),
        ((automaton.initial_state, None),),
        edges,
        letters,
        origin=f"the {type(automaton).__name__}",
    )
    return to_machine(graph, completion)


def to_automata(machine: MooreMachine) -> DFA:
    """Return the automata-lib DFA of an acceptor, with the same numbers of states and the texts of the letters.

    Raises `UnsupportedFormat` if the machine is not an acceptor, two letters have the same text, or one is empty.

    >>> sorted(to_automata(MooreMachine([[1, 0]], [True, False], alphabet="a")).final_states)
    [0]
    """
    letters = text_letters(machine, "automata-lib")
    if not machine.is_acceptor:
        raise UnsupportedFormat(
            "a DFA of automata-lib accepts or rejects, this machine has other outputs "
            f"({', '.join(repr(o) for o in dict.fromkeys(machine.outputs))}): write it as JSON, DOT or networkx"
        )
    transitions = {
        q: {letter: int(machine.delta[a, q]) for a, letter in enumerate(letters)} for q in range(machine.n_states)
    }
    return DFA(
        states=set(transitions),
        input_symbols=set(letters),
        transitions=transitions,
        initial_state=machine.start,
        final_states={q for q, accepts in enumerate(machine.outputs) if accepts},
    )


def text_letters(machine: MooreMachine, target: str) -> list[str]:
    """Return the texts of a machine's letters, for a format named `target` whose letters are texts.

    Raises `UnsupportedFormat` if two letters have the same text, or one is empty, which means epsilon there.
    """
    written: dict[str, Hashable] = {}
    for letter in machine.alphabet:
        text = str(letter)
        if text in written:
            raise UnsupportedFormat(
                f"letters {written[text]!r} and {letter!r} are both written {text!r}, and {target} holds text alone: "
                "rename one, or write JSON"
            )
        if not text:
            raise UnsupportedFormat(
                f"letter {letter!r} is written as nothing, which {target} reads as epsilon: rename it, or write JSON"
            )
        written[text] = letter
    return list(written)
