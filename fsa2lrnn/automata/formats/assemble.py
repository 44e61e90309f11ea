"""Build a Moore machine from a labelled graph: complete, determinise, and convert from Mealy to Moore."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

from fsa2lrnn.automata.formats.graph import EPSILON, LabelledGraph, alphabet_of, check_graph
from fsa2lrnn.automata.language import MISSING, Completion, check_completion, complete, enumerate_states
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

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
