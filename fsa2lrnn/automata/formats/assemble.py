"""Construction of a Moore machine from a labelled graph: completion, determinisation, Mealy to Moore."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import numpy as np

from fsa2lrnn.automata.formats.graph import EPSILON, LabelledGraph, alphabet_of, graph_problems, raise_problems
from fsa2lrnn.automata.language import MISSING, Completion, check_completion, complete
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

S = TypeVar("S", bound=Hashable)

# δ is dense, and a sparse file can ask for terabytes: so many entries beyond two for each edge that is written down.
MAX_TABLE_ENTRIES = 1_000_000
MAX_SUBSETS = 100_000  # a nondeterministic automaton of n states can need 2ⁿ deterministic ones
MAX_SUBSET_MEMBERS = 5_000_000  # over all subsets met, some seconds and 20 MB
_LONGEST_NAME = 80  # characters of the label of a subset
_EPSILON = -1  # as the number of a letter

Moves = Callable[
    [S], Iterable[tuple[int, S]]
]  # from a state: the numbers of the letters that it reads, each with the next state


def to_machine(graph: LabelledGraph, completion: Completion | None = None) -> MooreMachine:
    """Return the Moore machine of a graph; the names of the states become its labels.

    Deterministic acceptors and Moore machines keep their states in order. A nondeterministic acceptor
    (epsilon edges, several edges or several starts) is determinised: its states are the reachable sets, labelled
    "{p, q}". A Mealy machine becomes the Moore machine on the reachable pairs (state, last output), labelled so, with
    None for the output at the start, before any letter.

    Args:
        completion: the meaning of a missing transition: "error", "sink" (a new absorbing state, rejecting for acceptors
            and with output None elsewhere) or "ignore" (the state stays). By default a sink for acceptors, which is how
            these formats are read everywhere, and an error for Moore and Mealy machines.

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
    raise_problems(graph.origin, graph_problems(graph))
    alphabet = alphabet_of(graph)
    if graph.kind == "mealy":
        return _from_mealy(graph, alphabet, completion or "error")
    if graph.kind == "acceptor" and not _is_deterministic(graph):
        return _determinised(graph, alphabet, completion or "sink")
    return _direct(graph, alphabet, completion or ("sink" if graph.kind == "acceptor" else "error"))


def _most_entries(graph: LabelledGraph) -> int:
    return MAX_TABLE_ENTRIES + 2 * len(graph.edges)


def _is_deterministic(graph: LabelledGraph) -> bool:
    target: dict[tuple[Hashable, Hashable], Hashable] = {}
    return len(graph.starts) == 1 and all(
        edge.letter is not EPSILON and target.setdefault((edge.source, edge.letter), edge.target) == edge.target
        for edge in graph.edges
    )


def _direct(graph: LabelledGraph, alphabet: tuple[Hashable, ...], completion: Completion) -> MooreMachine:
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
    labels = [state.name for state in graph.states]
    return _completed(
        graph, delta, outputs, number[graph.starts[0][0]], alphabet, labels, completion, False if is_acceptor else None
    )


def _from_mealy(graph: LabelledGraph, alphabet: tuple[Hashable, ...], completion: Completion) -> MooreMachine:
    position = {letter: a for a, letter in enumerate(alphabet)}
    leaving: dict[Hashable, dict[int, tuple[Hashable, Hashable]]] = {}
    for edge in graph.edges:
        leaving.setdefault(edge.source, {})[position[edge.letter]] = edge.target, edge.output
    name = {state.key: state.name for state in graph.states}

    def moves(pair: tuple[Hashable, Hashable]) -> Iterable[tuple[int, tuple[Hashable, Hashable]]]:
        return leaving.get(pair[0], {}).items()

    return _explored(
        graph,
        alphabet,
        (graph.starts[0][0], None),
        moves,
        lambda pair: pair[1],
        lambda pair: (name[pair[0]], pair[1]),
        completion,
        None,
    )


def _determinised(graph: LabelledGraph, alphabet: tuple[Hashable, ...], completion: Completion) -> MooreMachine:
    """Return the subset construction, each subset closed under epsilon edges when it is first reached.

    automata-lib, with which the tests compare it, has no limit on the subsets and closes every state beforehand, which
    is quadratic on a chain of epsilons (`(a?){1000}`: 10 s, here 0.1 s). A subset is stored as four bytes per state.
    """
    number = {state.key: q for q, state in enumerate(graph.states)}
    position = {letter: a for a, letter in enumerate(alphabet)}
    leaving: list[dict[int, set[int]]] = [{} for _ in graph.states]
    for edge in graph.edges:
        a = _EPSILON if edge.letter is EPSILON else position[edge.letter]
        leaving[number[edge.source]].setdefault(a, set()).add(number[edge.target])
    accepting = {q for q, state in enumerate(graph.states) if state.accepting}
    members, nothing = 0, set[int]()

    def closed(subset: set[int]) -> bytes:
        nonlocal members
        closure, stack = set(subset), list(subset)
        while stack:
            new = leaving[stack.pop()].get(_EPSILON, nothing) - closure
            closure |= new
            stack += new
        members += len(closure)
        if members > MAX_SUBSET_MEMBERS:
            raise BudgetExceeded
        return array("I", sorted(closure)).tobytes()

    def moves(subset: bytes) -> Iterable[tuple[int, bytes]]:
        images: dict[int, set[int]] = {}
        for q in memoryview(subset).cast("I"):
            for a, targets in leaving[q].items():
                if a != _EPSILON:
                    images.setdefault(a, set()).update(targets)
        return ((a, closed(image)) for a, image in images.items())

    def name(subset: bytes) -> str:
        first = memoryview(subset).cast("I")[:_LONGEST_NAME]
        text = "{" + ", ".join(str(graph.states[q].name)[:_LONGEST_NAME] for q in first) + "}"
        return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…}}"

    return _explored(
        graph,
        alphabet,
        closed({number[key] for key, _ in graph.starts}),
        moves,
        lambda subset: not accepting.isdisjoint(memoryview(subset).cast("I")),
        name,
        completion,
        False,
    )


def _explored(
    graph: LabelledGraph,
    alphabet: tuple[Hashable, ...],
    start: S,
    moves: Moves[S],
    output: Callable[[S], Hashable],
    name: Callable[[S], Hashable],
    completion: Completion,
    sink_output: Hashable,
) -> MooreMachine:
    """Return the machine of the states reachable from `start`, breadth first with the letters in order."""
    max_states = min(MAX_SUBSETS, _most_entries(graph) // len(alphabet))
    states, numbers, table = [start], {start: 0}, array("i")
    try:
        for state in states:
            column = [MISSING] * len(alphabet)
            for a, target in sorted(moves(state), key=lambda move: move[0]):
                if target not in numbers:
                    if len(states) == max_states:
                        raise BudgetExceeded
                    numbers[target] = len(states)
                    states.append(target)
                column[a] = numbers[target]
            table.extend(column)
    except BudgetExceeded:
        raise BudgetExceeded(
            f"{graph.origin}: the deterministic machine is beyond {max_states:,} states (or {MAX_SUBSET_MEMBERS:,} "
            "members of subsets): simplify the automaton, or minimise it with the tool that wrote it"
        ) from None
    del numbers
    delta = np.frombuffer(table, np.int32).reshape(len(states), len(alphabet)).T
    outputs = [output(state) for state in states]
    return _completed(graph, delta, outputs, 0, alphabet, [name(state) for state in states], completion, sink_output)


def _completed(
    graph: LabelledGraph,
    delta: np.ndarray,
    outputs: list[Hashable],
    start: int,
    alphabet: tuple[Hashable, ...],
    labels: list[Hashable],
    completion: Completion,
    sink_output: Hashable,
) -> MooreMachine:
    try:
        return complete(delta, outputs, start, alphabet, labels, completion, sink_output)
    except InvalidMachine as fault:
        raise InvalidMachine(f"{graph.origin}: {fault}") from None
