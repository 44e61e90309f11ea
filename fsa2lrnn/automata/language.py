"""Explore, trim, minimise, compare, combine and complete machines."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Literal, TypeVar, cast, get_args

import numpy as np

from fsa2lrnn.automata import table_kernels as tables
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat, shortened
from fsa2lrnn.symbols import align, confused

State = TypeVar("State", bound=Hashable)


def explore(
    alphabet: Iterable[Hashable],
    start: State,
    step: Callable[[State, Hashable], State],
    output: Callable[[State], Hashable],
    max_states: int = 1_000_000,
) -> MooreMachine:
    """Return the machine of the states reachable from `start`, numbered breadth first and labelled by themselves.

    `step` maps a state and a letter to the next state, `output` a state to its output. Raises `BudgetExceeded` for more
    than `max_states` reachable states.

    >>> explore("ab", 0, lambda q, a: (q + (a == "a")) % 3, lambda q: q == 0).n_states
    3
    """
    letters = tuple(alphabet)
    nothing = object()  # None may be a state
    states, delta = enumerate_states(start, lambda state: (step(state, a) for a in letters), max_states, nothing)
    return MooreMachine(delta, [output(state) for state in states], 0, letters, labels=states)


def enumerate_states(
    start: State, successors: Callable[[State], Iterable[State | None]], max_states: int, missing: Hashable = None
) -> tuple[list[State], np.ndarray]:
    """Return the states reachable from `start`, breadth first, and the numbers of their successors, int64 (k, N).

    `successors` gives k states; `missing` stands for one that does not exist, with the number −1. Raises
    `BudgetExceeded` for more than `max_states` reachable states.

    >>> enumerate_states(0, lambda q: [(q + 2) % 6, None], max_states=3)[1].tolist()
    [[1, 2, 0], [-1, -1, -1]]
    """
    states: list[State] = [start]
    number: dict[Hashable, int] = {missing: MISSING, start: 0}
    table = array("q")
    for state in states:
        for target in successors(state):
            if target not in number:
                if len(states) == max_states:
                    raise BudgetExceeded(
                        f"more than {max_states:,} states are reachable (the last: {target!r}): "
                        "is the task finite-state? raise max_states if it is"
                    )
                number[target] = len(states)
                states.append(target)  # type: ignore[arg-type]
            table.append(number[target])
    return states, np.array(table).reshape(len(states), -1).T


Completion = Literal["error", "sink", "ignore"]
MISSING = -1  # an entry of a partial table


def trim(machine: MooreMachine) -> MooreMachine:
    """Return the part of a machine that is reachable from the start, with states renumbered breadth first.

    >>> trim(MooreMachine([[1, 1, 0]], "xyz", start=1)).outputs
    ('y',)
    """
    states, delta = reachable_table(machine.delta, machine.start)
    pick = states.tolist()
    labels = None if machine.labels is None else [machine.labels[q] for q in pick]
    return MooreMachine(delta, [machine.outputs[q] for q in pick], 0, machine.alphabet, labels)


def reachable_table(delta: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the states reachable from `start`, breadth first, and their table: int (k, n) -> int64 (N,), (k, N).

    >>> [array.tolist() for array in reachable_table(np.array([[1, 1, 0]]), 1)]
    [[1], [[0]]]
    """
    states = tables.breadth_first(delta, start)
    number = np.full(delta.shape[1], MISSING)
    number[states] = np.arange(len(states))
    return states, number[delta[:, states]]


def minimise(machine: MooreMachine) -> MooreMachine:
    """Return the smallest machine with the same transduction and the same output on the empty word.

    Hopcroft's algorithm runs on the reachable part, in O(|Σ| n log n). States are numbered breadth first, so two
    machines over the same alphabet are equivalent if and only if their minimal machines are `==`. A merged state has
    the label of its first member.

    >>> minimise(MooreMachine([[1, 2, 0, 3]], [True, False, True, False])).n_states
    3
    """
    reachable = trim(machine)
    classes = output_classes(reachable.outputs)
    blocks = tables.hopcroft(reachable.delta, classes, int(classes.max()) + 1)
    _, representative = np.unique(blocks, return_index=True)
    quotient = blocks[reachable.delta[:, representative]]
    pick = [int(q) for q in representative]
    merged = MooreMachine(
        quotient,
        [reachable.outputs[q] for q in pick],
        int(blocks[reachable.start]),
        reachable.alphabet,
        None if reachable.labels is None else [reachable.labels[q] for q in pick],
    )
    return trim(merged)


def equivalent(
    a: MachineSource, b: MachineSource, ignore: Collection[Hashable] = (), empty_word: bool = True
) -> tuple[Hashable, ...] | None:
    """Return a shortest word that distinguishes two machines, or None if they are equivalent.

    The time is near-linear in the number of transitions if all outputs count (Hopcroft & Karp 1971, breadth first:
    `table_kernels.distinguish` proves that its word is shortest), else in the number of reachable pairs of states.

    Args:
        a, b: machines over the same letters, in any order, or their sources.
        ignore: outputs of `b` that do not count: after a word with one of them, `a` may have any output.
        empty_word: whether the output on the empty word counts.

    Raises `InvalidMachine` if the alphabets differ.

    >>> even = MooreMachine([[1, 0]], [True, False])
    >>> equivalent(even, MooreMachine([[1, 2, 3, 3]], [True, False, True, True]))
    (0, 0, 0)
    >>> equivalent(even, MooreMachine([[1, 2, 1]], ["?", False, True]), empty_word=False) is None
    True
    """
    a, b = as_machine(a), as_machine(b)
    if ignore:
        agree = product(a, b, lambda output, target: target in ignore or output == target)
        # The product says whether the outputs agree, and is compared with the machine that always says so.
        a, b = agree, MooreMachine(np.zeros((len(a.alphabet), 1), np.int64), [True], 0, a.alphabet)
    if not empty_word:
        a, b = fresh_start(a, None), fresh_start(b, None)
    order = align(a.alphabet, b.alphabet)
    # Both machines in one table, the states of b behind those of a.
    joined = np.concatenate([a.delta, b.delta[order] + a.n_states], axis=1)
    classes = output_classes(a.outputs + b.outputs)
    differ, tokens = tables.distinguish(joined, classes, a.start, b.start + a.n_states)
    return tuple(a.alphabet[i] for i in tokens) if differ else None


def fresh_start(machine: MooreMachine, output: Hashable) -> MooreMachine:
    """Return a machine with a new start state that has this output and to which no letter leads back.

    >>> fresh_start(MooreMachine([[1, 0]], "eo"), None).transduce([0, 0])
    ['o', 'e']
    """
    delta = np.concatenate([machine.delta, machine.delta[:, [machine.start]]], axis=1)
    return MooreMachine(delta, (*machine.outputs, output), machine.n_states, machine.alphabet)


def distinguish(machine: MooreMachine, p: int, q: int) -> tuple[int, ...] | None:
    """Return a shortest word, as positions in the alphabet, on which the outputs from p and q differ, or None.

    >>> distinguish(MooreMachine([[1, 2, 2]], "xxy"), 0, 1)
    (0,)
    """
    differ, tokens = tables.distinguish(machine.delta, output_classes(machine.outputs), p, q)
    return tuple(tokens.tolist()) if differ else None


def product(
    a: MooreMachine,
    b: MooreMachine,
    combine: Callable[[Hashable, Hashable], Hashable] = lambda x, y: (x, y),
) -> MooreMachine:
    """Return the reachable part of the product of two machines, with outputs `combine(ω_a, ω_b)`, pairs by default.

    Labels are pairs of labels, in which labels that are tuples are spliced: a product of three machines has triples.
    Raises `InvalidMachine` if the alphabets differ.

    >>> both = product(MooreMachine([[1, 0]], [True, False]), MooreMachine([[1, 2, 0]], [True, False, False]),
    ...                lambda x, y: x and y)
    >>> both.n_states, both.transduce([0] * 6)
    (6, [False, False, False, False, False, True])
    """
    order = align(a.alphabet, b.alphabet)
    position = {letter: i for i, letter in enumerate(a.alphabet)}

    def step(pair: tuple[int, int], letter: Hashable) -> tuple[int, int]:
        i = position[letter]
        return int(a.delta[i, pair[0]]), int(b.delta[order[i], pair[1]])

    paired = explore(a.alphabet, (a.start, b.start), step, lambda pair: combine(a.outputs[pair[0]], b.outputs[pair[1]]))
    labels = [_coordinates(a, p) + _coordinates(b, q) for p, q in paired.labels or ()]  # type: ignore[misc]
    return MooreMachine(paired.delta, paired.outputs, paired.start, paired.alphabet, labels)


def combine_acceptors(
    a: MooreMachine, b: MooreMachine, accepts: Callable[[bool, bool], bool], name: str
) -> MooreMachine:
    """Return the minimal acceptor of the words w with `accepts(a accepts w, b accepts w)`.

    Raises `InvalidMachine` unless both are acceptors over the same letters; `name` is the operation in the message.

    >>> even = MooreMachine([[1, 0]], [True, False])
    >>> combine_acceptors(even, even, lambda x, y: x and not y, "-").n_states
    1
    """
    for machine in (a, b):
        check_acceptor(machine, name)
    return minimise(product(a, b, lambda x, y: accepts(bool(x), bool(y))))


def complement(machine: MooreMachine) -> MooreMachine:
    """Return the acceptor of the words that an acceptor rejects; raise `InvalidMachine` if an output is not a boolean.

    >>> complement(MooreMachine([[1, 0]], [True, False])).outputs
    (False, True)
    """
    check_acceptor(machine, "~")
    outputs = [not output for output in machine.outputs]
    return MooreMachine(machine.delta, outputs, machine.start, machine.alphabet, machine.labels)


def check_acceptor(machine: MooreMachine, name: str) -> None:
    """Raise `InvalidMachine`, naming an output and the operation `name`, unless every output is a boolean."""
    if not machine.is_acceptor:
        other = next(output for output in machine.outputs if not isinstance(output, bool | np.bool_))
        raise InvalidMachine(
            f"{name} is defined for acceptors, whose outputs are True and False, and this machine has the output "
            f"{shortened(repr(other))}: combine outputs with language.product(a, b, function)"
        )


def complete(
    delta: Sequence[Sequence[int | None]] | np.ndarray,
    outputs: Iterable[Hashable],
    start: int = 0,
    alphabet: Iterable[Hashable] | None = None,
    labels: Iterable[Hashable] | None = None,
    completion: Completion = "error",
    sink_output: Hashable = False,
) -> MooreMachine:
    """Return a machine from a partial table, in which None or −1 marks a missing transition.

    Args:
        delta: the table, shape (|Σ|, n); it and the arguments up to `labels` are as for `MooreMachine`.
        completion: the treatment of missing transitions. "error" raises, "sink" leads them to a new absorbing state
            with output `sink_output` and label "sink", "ignore" leads them to the same state.

    Raises:
        InvalidMachine: under "error", if a transition is missing, naming up to five; else as `MooreMachine` does.
        UnsupportedFormat: for another value of `completion`.

    >>> complete([[1, None], [None, 0]], [True, False], alphabet="ab", completion="sink").n_states
    3
    """
    check_completion(completion)
    outputs = list(outputs)
    try:
        table = _table(delta)
    except (TypeError, ValueError):
        return MooreMachine(delta, outputs, start, alphabet, labels)  # type: ignore[arg-type] - says what is wrong with it
    letters = tuple(range(len(table))) if alphabet is None else tuple(alphabet)
    names = None if labels is None else list(labels)
    if table.ndim == 2 and (missing := table == MISSING).any():
        if completion == "error":
            raise InvalidMachine(_missing_transitions(np.argwhere(missing), letters, names))
        if completion == "ignore":
            table = np.where(missing, np.arange(table.shape[1], dtype=np.int64), table)
        else:
            sink = table.shape[1]
            table = np.concatenate(
                [np.where(missing, sink, table), np.full((len(table), 1), sink, table.dtype)], axis=1, dtype=np.int64
            )
            outputs.append(sink_output)
            names = None if names is None else [*names, "sink"]
    return MooreMachine(table, outputs, start, letters, names)


def widen(machine: MooreMachine, alphabet: Iterable[Hashable], completion: Completion | None = None) -> MooreMachine:
    """Return a machine over the letters of `alphabet`, in that order, which may contain new letters.

    Transitions on new letters are treated as `completion` says (`complete`), by default "sink" for an acceptor and
    "error" for other machines. Raises `InvalidMachine` for new letters under "error", or if a letter of the machine is
    not in `alphabet`.

    >>> widen(MooreMachine([[0]], [True], alphabet="a"), "ab").transduce("aba")
    [True, False, False]
    """
    letters = tuple(alphabet)
    position = {letter: a for a, letter in enumerate(machine.alphabet)}
    if lost := [letter for letter in machine.alphabet if letter not in letters]:
        raise InvalidMachine(
            f"the alphabet {letters[:12]} lacks {lost[0]!r} ({type(lost[0]).__name__}), a letter of the machine: add it"
        )
    missing = np.full(machine.n_states, MISSING)
    table = np.array([machine.delta[position[letter]] if letter in position else missing for letter in letters])
    is_acceptor = machine.is_acceptor
    how = completion or ("sink" if is_acceptor else "error")
    sink_output = False if is_acceptor else None
    return complete(table, machine.outputs, machine.start, letters, machine.labels, how, sink_output)


def check_completion(completion: str) -> None:
    """Raise `UnsupportedFormat` unless `completion` is "error", "sink" or "ignore"."""
    if completion not in get_args(Completion):
        choices = ", ".join(get_args(Completion))
        raise UnsupportedFormat(f"completion {completion!r} is not known: choose one of {choices}")


def share_cells(delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cell of each letter, int (|Σ|,), and the first letter of each cell; equal rows of δ share a cell.

    >>> [array.tolist() for array in share_cells(np.array([[1, 0], [0, 0], [1, 0]]))]
    [[0, 1, 0], [0, 1]]
    """
    number: dict[bytes, int] = {}
    cell = np.array([number.setdefault(row.tobytes(), len(number)) for row in delta])
    return cell, np.unique(cell, return_index=True)[1]


def output_classes(outputs: Sequence[Hashable]) -> np.ndarray:
    """Return a class number for each output, in the order of first appearance: int64 (n,).

    Raises `InvalidMachine` for outputs that are equal in Python only (`symbols.confused`), such as 1 and True.

    >>> output_classes("bab").tolist()
    [0, 1, 0]
    """
    number: dict[Hashable, int] = {}
    if why := confused(outputs):
        raise InvalidMachine(f"outputs {why}")
    return np.array([number.setdefault(output, len(number)) for output in outputs], np.int64)


def _coordinates(machine: MooreMachine, q: int) -> tuple[Hashable, ...]:
    label = q if machine.labels is None else machine.labels[q]
    return cast("tuple[Hashable, ...]", label) if isinstance(label, tuple) else (label,)


def _missing_transitions(places: np.ndarray, letters: tuple[Hashable, ...], names: list[Hashable] | None) -> str:
    """Return the message that names the first five missing transitions; `places` are pairs (letter, state), (k, 2)."""

    def name(symbols: Sequence[Hashable], i: int) -> object:
        return symbols[i] if i < len(symbols) else i  # too few of them are the next error

    listed = ", ".join(f"state {name(names or (), q)!r} on {name(letters, a)!r}" for a, q in places[:5].tolist())
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    return (
        f"no transition for {listed}{more}: add them, or choose completion='sink' (to a new state that absorbs) "
        "or 'ignore' (the state stays)"
    )


def _table(delta: Sequence[Sequence[int | None]] | np.ndarray) -> np.ndarray:
    if isinstance(delta, np.ndarray) and delta.dtype.kind == "i":
        return delta
    return np.array([[MISSING if entry is None else entry for entry in row] for row in delta])
