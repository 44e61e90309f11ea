"""Represent the content of a file as a graph of states and edges, and check it for faults.

Every reader passes a `LabelledGraph` to `assemble.to_machine`, so that all formats treat missing transitions alike and
report the same faults by the same messages, with the line of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from fsa2lrnn.errors import InvalidMachine

Kind = Literal["acceptor", "moore", "mealy"]

PROBLEMS_SHOWN = 50  # a file of the wrong kind has one on every line
MAX_PROBLEMS = 1_000  # after which reading stops


class Mark(Enum):
    """Marks for no letter and no output, distinct from every letter and output that a file can contain."""

    EPSILON = "ε"
    ABSENT = "absent"


EPSILON, ABSENT = Mark.EPSILON, Mark.ABSENT

# The spellings of no letter in all formats: JFLAP's, pyformlang's, OpenFst's, foma's and HFST's.
_EPSILONS = {"ε", "ϵ", "ɛ", "λ", "Λ", "𝜀", "𝜖", "<ε>", "&epsilon;", "eps", "epsilon", "<eps>", "<epsilon>", "@0@"}
_EPSILONS.add("@_epsilon_symbol_@")


def is_epsilon(letter: Hashable) -> bool:
    """Return whether a letter of a format that does not declare its letters is a spelling of no letter."""
    return isinstance(letter, str) and (letter in _EPSILONS or letter.lower() in _EPSILONS)


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a file; `line` counts from 1 and is None for the whole file or a format without lines."""

    text: str
    line: int | None = None

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class State:
    """A state, to which edges refer by `key` and which is displayed by `name`; only Moore machines have an `output`."""

    key: Hashable
    name: Hashable
    accepting: bool = False
    output: Hashable = ABSENT
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition, whose `letter` may be `EPSILON`; only Mealy machines have an `output`."""

    source: Hashable
    letter: Hashable
    target: Hashable
    output: Hashable = ABSENT
    line: int | None = None


@dataclass(frozen=True)
class LabelledGraph:
    """The content of a source as a graph with labels.

    Args:
        kind: the type of machine: states accept (acceptor), states have outputs (moore), or edges do (mealy).
        states: the states in the order of the file.
        starts: the keys of the start states, each with its line.
        edges: the edges in any order.
        alphabet: the declared alphabet; if None, the letters of the edges in natural order (`in_natural_order`).
        origin: the name of the file or source, for messages.
        start_remedy: the way to mark a start state in this format, for messages.
        may_be_empty: whether all accepting states may be unreachable, as in graphs made by programs.
        problems: the problems that the reader detected; `check_graph` adds to them.
    """

    kind: Kind
    states: tuple[State, ...]
    starts: tuple[tuple[Hashable, int | None], ...]
    edges: tuple[Edge, ...]
    alphabet: tuple[Hashable, ...] | None = None
    origin: str = "the graph"
    start_remedy: str = "mark one state as start"
    may_be_empty: bool = False
    problems: Sequence[Problem] = ()


class Problems:
    """A list of the faults of a source that raises `InvalidMachine` beyond `MAX_PROBLEMS`."""

    def __init__(self, origin: str, problems: Iterable[Problem] = ()) -> None:
        self.origin, self.all = origin, list(problems)

    def add(self, text: str, line: int | None = None) -> None:
        """Add a fault; raise `InvalidMachine` with all faults if there are too many."""
        self.all.append(Problem(text, line))
        if len(self.all) > MAX_PROBLEMS:
            self.check()

    def check(self) -> None:
        """Raise `InvalidMachine` with all faults, if there are any."""
        if self.all:
            raise InvalidMachine(problem_report(self.origin, self.all))


def problem_report(origin: str, problems: Sequence[Problem]) -> str:
    """Return the text of all problems in the order of their lines: up to fifty, and the number of the others."""
    ordered = sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0))
    if len(ordered) == 1:
        return f"{origin}: {ordered[0]}"
    listed = "".join(f"\n  {problem}" for problem in ordered[:PROBLEMS_SHOWN])
    more = f"\n  and {len(ordered) - PROBLEMS_SHOWN} more" if len(ordered) > PROBLEMS_SHOWN else ""
    return f"{origin}: {len(ordered)} problems{listed}{more}"


def in_natural_order(letters: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the distinct letters sorted by their text, with runs of digits compared by value.

    >>> in_natural_order(["b", "a10", "a9", 3, 20])
    (3, 20, 'a9', 'a10', 'b')
    """
    return tuple(sorted(set(letters), key=_natural_key))


def _natural_key(letter: Hashable) -> tuple[list[tuple[int, int, str]], str]:
    parts = re.split(r"([0-9]+)", str(letter))
    return (
        [(0, len(p.lstrip("0")), p.lstrip("0")) if p.isdecimal() else (1, 0, p) for p in parts if p],
        f"{type(letter).__name__} {letter!r}",
    )


def alphabet_of(graph: LabelledGraph) -> tuple[Hashable, ...]:
    """Return the declared alphabet of a graph, or else the letters of its edges in natural order."""
    if graph.alphabet is not None:
        return graph.alphabet
    return in_natural_order(edge.letter for edge in graph.edges if edge.letter is not EPSILON)


def check_graph(graph: LabelledGraph) -> None:
    """Raise `InvalidMachine` if a graph has problems, with all of them, also those that its reader detected."""
    alphabet, problems = alphabet_of(graph), Problems(graph.origin, graph.problems)
    first_line: dict[Hashable, int | None] = {}
    for state in graph.states:
        if state.key in first_line:
            before = "" if first_line[state.key] is None else f", first in line {first_line[state.key]}"
            problems.add(f"state {state.key!r} is defined twice{before}: rename or remove one", state.line)
        first_line.setdefault(state.key, state.line)
    if not graph.states:
        problems.add("there are no states: a machine needs at least its start state")
    elif not graph.starts:
        problems.add(f"no state is marked as start: {graph.start_remedy}")
    elif len(graph.starts) > 1 and graph.kind != "acceptor":
        names = ", ".join(repr(key) for key, _ in graph.starts)
        problems.add(f"{len(graph.starts)} start states ({names}): keep one", graph.starts[1][1])
    for key, line in graph.starts:
        if key not in first_line:
            problems.add(f"the start {key!r} is not a state of the file: define it or correct the name", line)
    if not alphabet and graph.states:
        problems.add("the alphabet is empty: a machine needs at least one transition or declared letter")
    if len(set(alphabet)) != len(alphabet):
        ((twice, _),) = Counter(alphabet).most_common(1)
        problems.add(f"letter {twice!r} stands twice in the alphabet: letters are distinct")
    # Outputs stand on the states of a Moore machine, on the edges of a Mealy machine, and nowhere in an acceptor.
    _check_edges(graph, set(first_line), set(alphabet), problems)
    if graph.kind == "moore":
        for state in graph.states:
            if state.output is ABSENT:
                problems.add(f"state {state.name!r} has no output: in a Moore machine each has one", state.line)
    elif any(state.output is not ABSENT for state in graph.states):
        both = "edges" if graph.kind == "mealy" else "accepting marks"
        problems.add(f"outputs stand both on states and on {both}: keep one of the two")
    if not problems.all and graph.kind == "acceptor" and not graph.may_be_empty:
        _check_reachable(graph, problems)
    problems.check()


def _check_edges(graph: LabelledGraph, keys: set[Hashable], letters: set[Hashable], problems: Problems) -> None:
    """Add the problems of edges: unknown states and letters, misplaced outputs, nondeterminism except in acceptors."""
    kind = graph.kind.capitalize()
    first_edge: dict[tuple[Hashable, Hashable], Edge] = {}
    for edge in graph.edges:
        place = f"the edge from {edge.source!r} on {edge.letter!r}"
        for role, key in (("from", edge.source), ("to", edge.target)):
            if key not in keys:
                problems.add(f"an edge goes {role} {key!r}, which is not a state: define it or fix the name", edge.line)
        if edge.letter is not EPSILON and edge.letter not in letters:
            problems.add(f"letter {edge.letter!r} is not in the declared alphabet: add it there", edge.line)
        if graph.kind == "acceptor":
            if edge.output is not ABSENT:
                problems.add(f"an edge of an acceptor has the output {edge.output!r}: remove it", edge.line)
            continue
        if edge.letter is EPSILON:
            problems.add(f"an edge of a {kind} machine reads no letter: give it one", edge.line)
        if graph.kind == "mealy" and edge.output is ABSENT:
            problems.add(f"{place} has no output, others have one", edge.line)
        if graph.kind == "moore" and edge.output is not ABSENT:
            remedy = "keep outputs on states (Moore) or on edges (Mealy)"
            problems.add(f"{place} has the output {edge.output!r}, and so have the states: {remedy}", edge.line)
        other = first_edge.setdefault((edge.source, edge.letter), edge)
        if (other.target, other.output) != (edge.target, edge.output):
            where = "" if other.line is None else f" (the other stands in line {other.line})"
            reason = f"a {kind} machine is deterministic, keep one of them"
            problems.add(f"two edges leave {edge.source!r} on {edge.letter!r}{where}: {reason}", edge.line)


def _check_reachable(graph: LabelledGraph, problems: Problems) -> None:
    """Add a problem if a graph has accepting states, but none of them is reachable from a start."""
    accepting = [state for state in graph.states if state.accepting]
    successors: dict[Hashable, list[Hashable]] = {}
    for edge in graph.edges:
        successors.setdefault(edge.source, []).append(edge.target)
    reached = dict.fromkeys(key for key, _ in graph.starts)
    waiting = list(reached)
    for key in waiting:
        new = [target for target in dict.fromkeys(successors.get(key, ())) if target not in reached]
        reached.update(dict.fromkeys(new))
        waiting += new
    if accepting and not any(state.key in reached for state in accepting):
        listed = ", ".join(str(state.name) for state in accepting[:8]) + (", …" if len(accepting) > 8 else "")
        starts = ", ".join(str(key) for key, _ in graph.starts)
        problems.add(
            f"accepting states {{{listed}}} cannot be reached from start {starts}: the language would be empty; "
            "correct the start or the edges, or unmark them if that is meant",
            accepting[0].line,
        )
