"""From a labelled graph to a Moore machine: completing, determinising, and Mealy to Moore."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

import numpy as np

from fsa2lrnn.automata.explore import explore
from fsa2lrnn.automata.formats.graph import EPSILON, LabelledGraph, alphabet_of, graph_problems, raise_problems
from fsa2lrnn.automata.language import MISSING, Completion, check_completion, complete
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

S = TypeVar("S", bound=Hashable)

MAX_TABLE_ENTRIES = 10_000_000  # δ is dense: 10⁷ entries are 80 MB, and a sparse file can ask for terabytes
MAX_SUBSETS = 100_000  # a nondeterministic automaton of n states can need 2ⁿ deterministic ones
MAX_SUBSET_MEMBERS = 5_000_000  # over all subsets met, a few seconds and some 200 MB


def to_machine(graph: LabelledGraph, completion: Completion | None = None) -> MooreMachine:
    """The Moore machine of a graph; the names of the states become its labels.

    Deterministic acceptors and Moore machines keep their states and the order of these. A nondeterministic acceptor
    (epsilon edges, several edges or several starts) is determinised: its states are the reachable sets, labelled
    "{p, q}". A Mealy machine becomes the Moore machine on the reachable pairs (state, last output), labelled so, with
    None for the output at the start, before any letter.

    Args:
        completion: what a missing transition means: "error", "sink" (a new absorbing state, rejecting in an acceptor
            and with output None elsewhere) or "ignore" (the state stays). By default a sink for acceptors, which is how
            these formats are read everywhere, and an error for Moore and Mealy machines.

    Raises:
        InvalidMachine: with every fault of the graph, one a line.
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
    if len(graph.states) * len(alphabet) > MAX_TABLE_ENTRIES:
        raise BudgetExceeded(
            f"{graph.origin}: {len(graph.states):,} states and {len(alphabet):,} letters make a table of more than "
            f"{MAX_TABLE_ENTRIES:,} entries: merge letters that act alike, or build the MooreMachine yourself"
        )
    if graph.kind == "mealy":
        return _from_mealy(graph, alphabet, completion or "error")
    if graph.kind == "acceptor" and not _is_deterministic(graph):
        return _determinised(graph, alphabet, completion or "sink")
    return _direct(graph, alphabet, completion or ("sink" if graph.kind == "acceptor" else "error"))


def _is_deterministic(graph: LabelledGraph) -> bool:
    target: dict[tuple[Hashable, Hashable], Hashable] = {}
    return len(graph.starts) == 1 and all(
        edge.letter is not EPSILON and target.setdefault((edge.source, edge.letter), edge.target) == edge.target
        for edge in graph.edges
    )


def _direct(graph: LabelledGraph, alphabet: tuple[Hashable, ...], completion: Completion) -> MooreMachine:
    number = {state.key: q for q, state in enumerate(graph.states)}
    position = {letter: a for a, letter in enumerate(alphabet)}
    delta = np.full((len(alphabet), len(graph.states)), MISSING)
    for edge in graph.edges:
        delta[position[edge.letter], number[edge.source]] = number[edge.target]
    is_acceptor = graph.kind == "acceptor"
    outputs = [state.accepting if is_acceptor else state.output for state in graph.states]
    labels = [state.name for state in graph.states]
    return _completed(
        graph, delta, outputs, number[graph.starts[0][0]], alphabet, labels, completion, False if is_acceptor else None
    )


def _from_mealy(graph: LabelledGraph, alphabet: tuple[Hashable, ...], completion: Completion) -> MooreMachine:
    table = {(edge.source, edge.letter): (edge.target, edge.output) for edge in graph.edges}
    name = {state.key: state.name for state in graph.states}

    def step(pair: tuple[Hashable, Hashable], letter: Hashable) -> tuple[Hashable, Hashable] | None:
        return table.get((pair[0], letter))

    return _explored(
        graph,
        alphabet,
        (graph.starts[0][0], None),
        step,
        lambda pair: pair[1],
        lambda pair: (name[pair[0]], pair[1]),
        completion,
        None,
    )


def _determinised(graph: LabelledGraph, alphabet: tuple[Hashable, ...], completion: Completion) -> MooreMachine:
    """Sets of states, each closed under epsilon edges when it is met.

    Here and not by automata-lib, against which the tests compare it: that has no limit on the sets, and it closes every
    state beforehand, quadratic on a chain of epsilons (`(a?){1000}`: 10 s, here a tenth of one).
    """
    number = {state.key: q for q, state in enumerate(graph.states)}
    targets: dict[tuple[int, Hashable], set[int]] = {}
    for edge in graph.edges:
        targets.setdefault((number[edge.source], edge.letter), set()).add(number[edge.target])
    accepting = {q for q, state in enumerate(graph.states) if state.accepting}
    members = 0

    def closed(subset: set[int]) -> frozenset[int]:
        nonlocal members
        found, stack = set(subset), list(subset)
        while stack:
            new = targets.get((stack.pop(), EPSILON), set()) - found
            found |= new
            stack += new
        members += len(found)
        if members > MAX_SUBSET_MEMBERS:
            raise BudgetExceeded
        return frozenset(found)

    def step(subset: frozenset[int], letter: Hashable) -> frozenset[int] | None:
        return closed(set[int]().union(*(targets.get((q, letter), ()) for q in subset))) or None

    return _explored(
        graph,
        alphabet,
        closed({number[key] for key, _ in graph.starts}),
        step,
        lambda subset: not subset.isdisjoint(accepting),
        lambda subset: "{" + ", ".join(str(graph.states[q].name) for q in sorted(subset)) + "}",
        completion,
        False,
    )


def _explored(
    graph: LabelledGraph,
    alphabet: tuple[Hashable, ...],
    start: S,
    step: Callable[[S, Hashable], S | None],
    output: Callable[[S], Hashable],
    name: Callable[[S], Hashable],
    completion: Completion,
    sink_output: Hashable,
) -> MooreMachine:
    """The states reachable from `start`; `step` gives None for a missing transition, which `completion` settles."""

    def step_or_miss(state: S | None, letter: Hashable) -> S | None:
        return None if state is None else step(state, letter)

    def output_or_sink(state: S | None) -> Hashable:
        return sink_output if state is None else output(state)

    max_states = min(MAX_SUBSETS, MAX_TABLE_ENTRIES // len(alphabet))
    try:
        whole = explore(alphabet, start, step_or_miss, output_or_sink, max_states)
    except BudgetExceeded:
        raise BudgetExceeded(
            f"{graph.origin}: the deterministic machine is beyond {max_states:,} states (or {MAX_SUBSET_MEMBERS:,} "
            "members of subsets): simplify the automaton, or minimise it with the tool that wrote it"
        ) from None
    states = cast("tuple[S | None, ...]", whole.labels)
    missing = states.index(None) if None in states else len(states)
    kept = [q for q in range(len(states)) if q != missing]
    names = [name(state) for state in states if state is not None]
    delta = whole.delta[:, kept]
    delta = np.where(delta == missing, MISSING, np.where(delta > missing, delta - 1, delta))
    outputs = [whole.outputs[q] for q in kept]
    return _completed(graph, delta, outputs, 0, alphabet, names, completion, sink_output)


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
