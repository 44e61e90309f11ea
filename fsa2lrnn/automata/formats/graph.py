"""Represent the content of a file as a graph of states and edges, check it, and build the Moore machine of it.

Every reader passes a `LabelledGraph` to `to_machine`, so that all formats treat missing transitions alike and
report the same faults by the same messages, with the line of the file.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeVar

import numpy as np

from fsa2lrnn.automata.language import MISSING, Completion, check_completion, complete, enumerate_states
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

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


S = TypeVar("S", bound=Hashable)

# The limit on the entries of δ, in addition to two per edge of the graph: a small sparse file could need terabytes.
MAX_TABLE_ENTRIES = 1_000_000
MAX_SUBSETS = 100_000  # a nondeterministic automaton of n states can need 2ⁿ deterministic ones
MAX_SUBSET_MEMBERS = 5_000_000  # over all subsets met, some seconds and 20 MB
_LONGEST_NAME = 80  # characters of the label of a subset


def to_machine(graph: LabelledGraph, completion: Completion | None = None) -> MooreMachine:
    """Return the Moore machine of a graph, whose labels are the names of the graph's states.

    Deterministic acceptors and Moore machines keep their states in order. A nondeterministic acceptor (with epsilon
    edges, several edges on one letter or several starts) is determinised: its states are the reachable sets of states,
    labelled "{p, q}". A Mealy machine becomes the Moore machine on the reachable pairs (state, last output), which are
    its labels; the output at the start is None.

    Args:
        completion: the treatment of missing transitions: "error", "sink" (to a new absorbing state, which rejects in an
            acceptor and has the output None elsewhere) or "ignore" (to the same state). The default is "sink" for
            acceptors, as is usual in these formats, and "error" for Moore and Mealy machines.

    Raises:
        InvalidMachine: with every fault of the graph, one per line.
        BudgetExceeded: if the table or the determinised machine is beyond the limits of this module.

    >>> from fsa2lrnn.automata.formats.graph import Edge, State
    >>> states = (State(0, "even", accepting=True), State(1, "odd"))
    >>> graph = LabelledGraph("acceptor", states, ((0, None),), (Edge(0, "a", 1), Edge(1, "a", 0)))
    >>> to_machine(graph).transduce("aa")
    [False, True]
    """
    if completion is not None:
        check_completion(completion)
    check_graph(graph)
    alphabet = alphabet_of(graph)
    try:
        if graph.kind == "mealy":
            return _from_mealy(graph, alphabet, completion or "error")
        if graph.kind == "acceptor" and not _is_deterministic(graph):
            return _determinised(graph, alphabet, completion or "sink")
        return _direct(graph, alphabet, completion or ("sink" if graph.kind == "acceptor" else "error"))
    except InvalidMachine as fault:
        raise InvalidMachine(f"{graph.origin}: {fault}") from None


def _most_entries(graph: LabelledGraph) -> int:
    return MAX_TABLE_ENTRIES + 2 * len(graph.edges)


def _is_deterministic(graph: LabelledGraph) -> bool:
    target: dict[tuple[Hashable, Hashable], Hashable] = {}
    return len(graph.starts) == 1 and all(
        edge.letter is not EPSILON and target.setdefault((edge.source, edge.letter), edge.target) == edge.target
        for edge in graph.edges
    )


def _direct(graph: LabelledGraph, alphabet: tuple[Hashable, ...], completion: Completion) -> MooreMachine:
    """Return the machine of a deterministic acceptor or a Moore machine; state i of the graph is column i of δ."""
    if len(graph.states) * len(alphabet) > (most := _most_entries(graph)):
        raise BudgetExceeded(
            f"{graph.origin}: {len(graph.states):,} states and {len(alphabet):,} letters make a table of more than "
            f"{most:,} entries: merge letters that act alike, or build the MooreMachine yourself"
        )
    number = {state.key: q for q, state in enumerate(graph.states)}
    position = {letter: a for a, letter in enumerate(alphabet)}
    delta = np.full((len(alphabet), len(graph.states)), MISSING, np.int32)
    for edge in graph.edges:
        delta[position[edge.letter], number[edge.source]] = number[edge.target]
    is_acceptor = graph.kind == "acceptor"
    outputs = [state.accepting if is_acceptor else state.output for state in graph.states]
    labels, sink_output = [state.name for state in graph.states], False if is_acceptor else None
    return complete(delta, outputs, number[graph.starts[0][0]], alphabet, labels, completion, sink_output)


def _from_mealy(graph: LabelledGraph, alphabet: tuple[Hashable, ...], completion: Completion) -> MooreMachine:
    """Return the Moore machine on the reachable pairs (state, output of the last edge), the start paired with None."""
    leaving: dict[Hashable, dict[Hashable, tuple[Hashable, Hashable]]] = {state.key: {} for state in graph.states}
    for edge in graph.edges:
        leaving[edge.source][edge.letter] = edge.target, edge.output
    name = {state.key: state.name for state in graph.states}

    def moves(pair: tuple[Hashable, Hashable]) -> dict[Hashable, tuple[Hashable, Hashable]]:
        return leaving[pair[0]]

    pairs, delta = _explored(graph, alphabet, (graph.starts[0][0], None), moves)
    labels = [(name[key], output) for key, output in pairs]
    return complete(delta, [output for _, output in pairs], 0, alphabet, labels, completion, None)


def _determinised(graph: LabelledGraph, alphabet: tuple[Hashable, ...], completion: Completion) -> MooreMachine:
    """Return the machine of the subset construction, which closes each subset under epsilon edges when it is reached.

    automata-lib, with which the tests compare it, has no limit on the subsets and closes every state beforehand, which
    is quadratic on a chain of epsilons (`(a?){1000}`: 10 s, here 0.1 s). A subset is stored as four bytes per state.
    """
    number = {state.key: q for q, state in enumerate(graph.states)}
    leaving: list[dict[Hashable, set[int]]] = [{} for _ in graph.states]
    for edge in graph.edges:
        leaving[number[edge.source]].setdefault(edge.letter, set()).add(number[edge.target])
    accepting = {q for q, state in enumerate(graph.states) if state.accepting}
    members, nothing = 0, set[int]()

    def closed(subset: set[int]) -> bytes:
        nonlocal members
        closure, stack = set(subset), list(subset)
        while stack:
            new = leaving[stack.pop()].get(EPSILON, nothing) - closure
            closure |= new
            stack += new
        members += len(closure)
        if members > MAX_SUBSET_MEMBERS:
            raise BudgetExceeded
        return array("I", sorted(closure)).tobytes()

    def moves(subset: bytes) -> dict[Hashable, bytes]:
        images: dict[Hashable, set[int]] = {}
        for q in memoryview(subset).cast("I"):
            for letter, targets in leaving[q].items():
                if letter is not EPSILON:
                    images.setdefault(letter, set()).update(targets)
        return {letter: closed(image) for letter, image in images.items()}

    def name(subset: bytes) -> str:
        first = memoryview(subset).cast("I")[:_LONGEST_NAME]
        text = "{" + ", ".join(str(graph.states[q].name)[:_LONGEST_NAME] for q in first) + "}"
        return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…}}"

    # A subset accepts if one of its states does.
    subsets, delta = _explored(graph, alphabet, closed({number[key] for key, _ in graph.starts}), moves)
    outputs = [not accepting.isdisjoint(memoryview(subset).cast("I")) for subset in subsets]
    return complete(delta, outputs, 0, alphabet, map(name, subsets), completion, False)


def _explored(
    graph: LabelledGraph, alphabet: tuple[Hashable, ...], start: S, moves: Callable[[S], dict[Hashable, S]]
) -> tuple[list[S], np.ndarray]:
    """Return the states reachable from `start`, breadth first with the letters in order, and the table of `moves`."""
    max_states = min(MAX_SUBSETS, _most_entries(graph) // len(alphabet))
    try:
        return enumerate_states(start, lambda state: map(moves(state).get, alphabet), max_states)
    except BudgetExceeded:
        raise BudgetExceeded(
            f"{graph.origin}: the deterministic machine is beyond {max_states:,} states (or {MAX_SUBSET_MEMBERS:,} "
            "members of subsets): simplify the automaton, or minimise it with the tool that wrote it"
        ) from None
