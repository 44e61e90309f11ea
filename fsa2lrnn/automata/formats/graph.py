"""What a file says, before it is a machine: states, edges and marks as they stand there, and what is wrong with them.

Every reader fills a `LabelledGraph` and hands it to `assemble.to_machine`, so that all formats mean the same by a
missing transition, refuse the same faults and say so in the same words, with the line of the file.
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

PROBLEMS_SHOWN = 50  # a file of the wrong kind has one at every line; nobody reads more than this
MAX_PROBLEMS = 1_000  # after which a file is not read on


class Mark(Enum):
    """Values that no file can hold, so that every letter and output remains possible, None among them."""

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
    """A state: `key` is what edges refer to, `name` what people read; `output` is for Moore machines alone."""

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
    """What a source says.

    Args:
        kind: what the states and edges carry.
        states: in the order of the file.
        starts: keys of the start states, each with its line.
        edges: in any order.
        alphabet: where the format declares one; else the letters of the edges, in natural order (`in_natural_order`).
        origin: the file or source, for messages.
        start_remedy: how this format marks a start state.
        may_be_empty: whether accepting states out of reach are meant, as they can be in what a program made.
        problems: what the reader found already; `graph_problems` adds its own.
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
    """Raises `InvalidMachine` with all problems, if there are any."""
    if problems:
        raise InvalidMachine(problem_report(origin, problems))


def stop_at_many(origin: str, problems: Sequence[Problem]) -> None:
    """Raises `InvalidMachine` with the problems found so far, if they are so many that there is no use in more."""
    if len(problems) > MAX_PROBLEMS:
        raise_problems(origin, problems)


def problem_report(origin: str, problems: Sequence[Problem]) -> str:
    """All problems in the order of their lines, one a line where there are several; past fifty they are counted."""
    ordered = sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0))
    if len(ordered) == 1:
        return f"{origin}: {ordered[0]}"
    shown = "".join(f"\n  {problem}" for problem in ordered[:PROBLEMS_SHOWN])
    more = f"\n  and {len(ordered) - PROBLEMS_SHOWN} more" if len(ordered) > PROBLEMS_SHOWN else ""
    return f"{origin}: {len(ordered)} problems{shown}{more}"


def in_natural_order(letters: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Distinct letters sorted by their text, runs of digits by their value; letters written alike by their type.

    >>> in_natural_order(["b", "a10", "a9", 3, 20])
    (3, 20, 'a9', 'a10', 'b')
    """
    return tuple(sorted(set(letters), key=natural_key))


def natural_key(letter: Hashable) -> tuple[list[tuple[int, int, str]], str]:
    """The sorting key of `in_natural_order`."""
    parts = re.split(r"([0-9]+)", str(letter))
    return (
        [(0, len(p.lstrip("0")), p.lstrip("0")) if p.isdecimal() else (1, 0, p) for p in parts if p],
        f"{type(letter).__name__} {letter!r}",
    )


def alphabet_of(graph: LabelledGraph) -> tuple[Hashable, ...]:
    """The declared alphabet, or the letters of the edges in natural order."""
    if graph.alphabet is not None:
        return graph.alphabet
    return in_natural_order(edge.letter for edge in graph.edges if edge.letter is not EPSILON)


def graph_problems(graph: LabelledGraph) -> list[Problem]:
    """Everything that keeps a graph from being a machine, what its reader found included."""
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
            faults.append(Problem(f"the start {key!r} is not a state of the file: define it or mend the name", line))
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
    seen: dict[tuple[Hashable, Hashable], Edge] = {}
    for edge in graph.edges:
        stop_at_many(graph.origin, faults)
        for role, key in (("from", edge.source), ("to", edge.target)):
            if key not in keys:
                faults.append(
                    Problem(f"an edge goes {role} {key!r}, which is not a state: define it or mend the name", edge.line)
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
        other = seen.setdefault((edge.source, edge.letter), edge)
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
    shown = ", ".join(str(s.name) for s in accepting[:8]) + (", …" if len(accepting) > 8 else "")
    starts = ", ".join(str(key) for key, _ in graph.starts)
    return [
        Problem(
            f"accepting states {{{shown}}} cannot be reached from start {starts}: the language would be empty; "
            "mend the start or the edges, or unmark them if that is meant",
            accepting[0].line,
        )
    ]
