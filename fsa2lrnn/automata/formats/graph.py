"""The states, edges and marks of a file before it is a machine, and the checks for faults in them.

Every reader passes a `LabelledGraph` to `assemble.to_machine`, so that all formats treat missing transitions alike and
report the same faults in the same words, with the line of the file.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Literal

from fsa2lrnn.errors import InvalidMachine

Kind = Literal["acceptor", "moore", "mealy"]

PROBLEMS_SHOWN = 50  # a file of the wrong kind has one on every line
MAX_PROBLEMS = 1_000  # after which reading stops


class Mark(Enum):
    """Values that no file can contain, so that every letter and output remains possible, None among them."""

    EPSILON = "ε"
    ABSENT = "absent"


EPSILON, ABSENT = Mark.EPSILON, Mark.ABSENT


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a file; `line` counts from 1 and is None where the format has no lines."""

    text: str
    line: int | None = None

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class State:
    """A state: edges refer to `key`, `name` is displayed; `output` is for Moore machines alone."""

    key: Hashable
    name: Hashable
    accepting: bool = False
    output: Hashable = ABSENT
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition; `letter` is `EPSILON` for one that reads nothing, `output` is for Mealy machines alone."""

    source: Hashable
    letter: Hashable
    target: Hashable
    output: Hashable = ABSENT
    line: int | None = None


@dataclass(frozen=True)
class LabelledGraph:
    """The content of a source as a graph with labels.

    Args:
        kind: whether states accept, states have outputs, or edges have outputs.
        states: in the order of the file.
        starts: keys of the start states, each with its line.
        edges: in any order.
        alphabet: where the format declares one; else the letters of the edges, in natural order (`in_natural_order`).
        origin: the file or source, for messages.
        start_remedy: how this format marks a start state.
        may_be_empty: whether unreachable accepting states are allowed, as in graphs made by programs.
        problems: the problems that the reader detected; `graph_problems` adds to them.
    """

    kind: Kind
    states: tuple[State, ...]
    starts: tuple[tuple[Hashable, int | None], ...]
    edges: tuple[Edge, ...]
    alphabet: tuple[Hashable, ...] | None = None
    origin: str = "the graph"
    start_remedy: str = "mark one state as start"
    may_be_empty: bool = False
    problems: tuple[Problem, ...] = ()


def raise_problems(origin: str, problems: Sequence[Problem]) -> None:
    """Raise `InvalidMachine` with all problems, if there are any."""
    if problems:
        raise InvalidMachine(problem_report(origin, problems))


def stop_at_many(origin: str, problems: Sequence[Problem]) -> None:
    """Raise `InvalidMachine` with the problems so far if there are more than `MAX_PROBLEMS`."""
    if len(problems) > MAX_PROBLEMS:
        raise_problems(origin, problems)


def problem_report(origin: str, problems: Sequence[Problem]) -> str:
    """Return all problems in the order of their lines, one per line if several; those past fifty are counted."""
    ordered = sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0))
    if len(ordered) == 1:
        return f"{origin}: {ordered[0]}"
    listed = "".join(f"\n  {problem}" for problem in ordered[:PROBLEMS_SHOWN])
    more = f"\n  and {len(ordered) - PROBLEMS_SHOWN} more" if len(ordered) > PROBLEMS_SHOWN else ""
    return f"{origin}: {len(ordered)} problems{listed}{more}"


def in_natural_order(letters: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return distinct letters sorted by their text, runs of digits by value, letters with equal text by type.

    >>> in_natural_order(["b", "a10", "a9", 3, 20])
    (3, 20, 'a9', 'a10', 'b')
    """
    return tuple(sorted(set(letters), key=natural_key))


def natural_key(letter: Hashable) -> tuple[list[tuple[int, int, str]], str]:
    """Return the sorting key of `in_natural_order`."""
    parts = re.split(r"([0-9]+)", str(letter))
    return (
        [(0, len(p.lstrip("0")), p.lstrip("0")) if p.isdecimal() else (1, 0, p) for p in parts if p],
        f"{type(letter).__name__} {letter!r}",
    )


def alphabet_of(graph: LabelledGraph) -> tuple[Hashable, ...]:
    """Return the declared alphabet, or the letters of the edges in natural order."""
    if graph.alphabet is not None:
        return graph.alphabet
    return in_natural_order(edge.letter for edge in graph.edges if edge.letter is not EPSILON)


def graph_problems(graph: LabelledGraph) -> list[Problem]:
    """Return all faults that keep a graph from being a machine, including those that its reader detected."""
    alphabet, faults = alphabet_of(graph), list(graph.problems)
    first_line: dict[Hashable, int | None] = {}
    for state in graph.states:
        stop_at_many(graph.origin, faults)
        if state.key in first_line:
            before = "" if first_line[state.key] is None else f", first in line {first_line[state.key]}"
            faults.append(Problem(f"state {state.key!r} is defined twice{before}: rename or remove one", state.line))
        first_line.setdefault(state.key, state.line)
    if not graph.states:
        faults.append(Problem("there are no states: a machine needs at least its start state"))
    elif not graph.starts:
        faults.append(Problem(f"no state is marked as start: {graph.start_remedy}"))
    elif len(graph.starts) > 1 and graph.kind != "acceptor":
        names = ", ".join(repr(key) for key, _ in graph.starts)
        faults.append(Problem(f"{len(graph.starts)} start states ({names}): keep one", graph.starts[1][1]))
    for key, line in graph.starts:
        if key not in first_line:
            faults.append(Problem(f"the start {key!r} is not a state of the file: define it or correct the name", line))
    if not alphabet and graph.states:
        faults.append(Problem("the alphabet is empty: a machine needs at least one transition or declared letter"))
    if len(set(alphabet)) != len(alphabet):
        ((twice, _),) = Counter(alphabet).most_common(1)
        faults.append(Problem(f"letter {twice!r} stands twice in the alphabet: letters are distinct"))
    faults += _edge_faults(graph, set(first_line), set(alphabet))
    if graph.kind == "moore":
        silent = (state for state in graph.states if state.output is ABSENT)
        faults += [
            Problem(f"state {s.name!r} has no output: in a Moore machine each has one", s.line)
            for s in islice(silent, MAX_PROBLEMS)
        ]
    elif any(s.output is not ABSENT for s in graph.states):
        both = "edges" if graph.kind == "mealy" else "accepting marks"
        faults.append(Problem(f"outputs stand both on states and on {both}: keep one of the two"))
    if not faults and graph.kind == "acceptor" and not graph.may_be_empty:
        faults += _unreachable_accepting(graph)
    return faults


def _edge_faults(graph: LabelledGraph, keys: set[Hashable], letters: set[Hashable]) -> list[Problem]:
    faults: list[Problem] = []
    first_edge: dict[tuple[Hashable, Hashable], Edge] = {}
    for edge in graph.edges:
        stop_at_many(graph.origin, faults)
        for role, key in (("from", edge.source), ("to", edge.target)):
            if key not in keys:
                faults.append(
                    Problem(f"an edge goes {role} {key!r}, which is not a state: define it or fix the name", edge.line)
                )
        if edge.letter is not EPSILON and edge.letter not in letters:
            faults.append(Problem(f"letter {edge.letter!r} is not in the declared alphabet: add it there", edge.line))
        if graph.kind == "acceptor":
            if edge.output is not ABSENT:
                faults.append(Problem(f"an edge of an acceptor has the output {edge.output!r}: remove it", edge.line))
            continue
        if edge.letter is EPSILON:
            faults.append(
                Problem(f"an edge of a {graph.kind.capitalize()} machine reads no letter: give it one", edge.line)
            )
        if graph.kind == "mealy" and edge.output is ABSENT:
            faults.append(
                Problem(f"the edge from {edge.source!r} on {edge.letter!r} has no output, others have one", edge.line)
            )
        if graph.kind == "moore" and edge.output is not ABSENT:
            faults.append(
                Problem(
                    f"the edge from {edge.source!r} on {edge.letter!r} has the output {edge.output!r}, and so have the "
                    "states: keep outputs on states (Moore) or on edges (Mealy)",
                    edge.line,
                )
            )
        other = first_edge.setdefault((edge.source, edge.letter), edge)
        if (other.target, other.output) != (edge.target, edge.output):
            where = "" if other.line is None else f" (the other stands in line {other.line})"
            faults.append(
                Problem(
                    f"two edges leave {edge.source!r} on {edge.letter!r}{where}: a {graph.kind.capitalize()} machine "
                    "is deterministic, keep one of them",
                    edge.line,
                )
            )
    return faults


def _unreachable_accepting(graph: LabelledGraph) -> list[Problem]:
    accepting = [state for state in graph.states if state.accepting]
    successors: dict[Hashable, list[Hashable]] = {}
    for edge in graph.edges:
        successors.setdefault(edge.source, []).append(edge.target)
    reached = {key for key, _ in graph.starts}
    queue = deque(reached)
    while queue:
        for target in successors.get(queue.popleft(), ()):
            if target not in reached:
                reached.add(target)
                queue.append(target)
    if not accepting or any(state.key in reached for state in accepting):
        return []
    listed = ", ".join(str(s.name) for s in accepting[:8]) + (", …" if len(accepting) > 8 else "")
    starts = ", ".join(str(key) for key, _ in graph.starts)
    return [
        Problem(
            f"accepting states {{{listed}}} cannot be reached from start {starts}: the language would be empty; "
            "correct the start or the edges, or unmark them if that is meant",
            accepting[0].line,
        )
    ]
