"""Hypothesis strategies for machines, words, transitions and recurrences, for the tests of this library and of users.

Every strategy builds valid values directly and filters nothing, so that it is fast. It shrinks towards one state, one
letter, the first output, the shortest word, one head and zeros: for `machines`, usually to the smallest example.

>>> from hypothesis import find
>>> find(machines(), lambda m: m.run("a") != m.run("aa")).delta.tolist()
[[1, 0]]
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.integer_tables import DenseTables
from fsa2lrnn.compile.recurrence import DenseReadout, Recurrence
from fsa2lrnn.nn.normalise import normalise
from fsa2lrnn.optional import require

if TYPE_CHECKING:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
else:
    st = require("hypothesis.strategies", "test", "fsa2lrnn.testing.strategies")

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MARGIN = 1 + 2.0**-48  # factor on the norm by which a column is divided, so that rounding cannot lift it above 1


@st.composite
def machines(
    draw: DrawFn,
    max_states: int = 8,
    max_letters: int = 3,
    outputs: Sequence[Hashable] = (0, 1, 2),
    alphabet: Sequence[Hashable] | None = None,
) -> MooreMachine:
    """Draw a Moore machine of 1 … `max_states` states, any of which may be the start, unreachable or redundant.

    The letters are "a", "b", … (at most `max_letters`), or exactly those of `alphabet`. Every complete table over them
    is possible. Shrinks towards one state, one letter, the start 0, transitions to state 0 and the first of `outputs`.

    States are drawn in the order of discovery, after their largest number: with one state less, the last one disappears
    and the others are unchanged. With one letter less, the letter with the lexicographically least column disappears.
    Hence a large counterexample shrinks one state and one letter at a time.
    """
    unreachable = draw(st.integers(0, max_states - 1)) if draw(st.booleans()) else 0  # states
    most = draw(st.integers(1, max_states - unreachable))
    width = min(max_letters, len(_LETTERS)) if alphabet is None else len(alphabet)
    if alphabet is None:
        alphabet = _LETTERS[: draw(st.integers(1, width))]
    state = st.integers(0, max_states - 1)
    columns = np.array([[draw(state) for _ in range(width)] for _ in range(most + unreachable)]).T.tolist()
    columns = [columns[a] for a in sorted(sorted(range(width), key=columns.__getitem__)[width - len(alphabet) :])]
    rows, reached = list[list[int]](), 1
    while len(rows) < reached:
        row = [column[len(rows)] for column in columns]
        for a, to in enumerate(row):
            row[a] = to if to < reached else reached if reached < most else to % reached
            reached = max(reached, row[a] + 1)
        rows.append(row)
    n = reached + unreachable
    rows += [[column[most + q] % n for column in columns] for q in range(unreachable)]
    omega = [draw(st.sampled_from(outputs)) for _ in range(n)][::-1]  # the last state's first: it is kept the longest
    name = np.array(draw(st.permutations(range(n))))
    of = np.argsort(name)
    return MooreMachine(name[np.array(rows)[of].T], [omega[q] for q in of], int(name[0]), alphabet)


def dfas(
    max_states: int = 8, max_letters: int = 3, alphabet: Sequence[Hashable] | None = None
) -> SearchStrategy[MooreMachine]:
    """Return a strategy of acceptors: `machines` with Boolean outputs. Shrinks towards one state that rejects all."""
    return machines(max_states, max_letters, (False, True), alphabet)


@st.composite
def permutation_machines(
    draw: DrawFn, max_states: int = 8, max_letters: int = 3, outputs: Sequence[Hashable] = (0, 1, 2)
) -> MooreMachine:
    """Draw a machine whose letters permute the states. Shrinks towards one state and identities."""
    n = draw(st.integers(1, max_states))
    alphabet = _LETTERS[: draw(st.integers(1, min(max_letters, len(_LETTERS))))]
    delta = [draw(st.permutations(range(n))) for _ in alphabet]
    omega = draw(st.lists(st.sampled_from(outputs), min_size=n, max_size=n))
    return MooreMachine(delta, omega, draw(st.integers(0, n - 1)), alphabet)


@st.composite
def aperiodic_machines(
    draw: DrawFn, max_states: int = 8, max_letters: int = 3, outputs: Sequence[Hashable] = (0, 1, 2)
) -> MooreMachine:
    """Draw an aperiodic machine: no word permutes states in a cycle (the transition monoid has only trivial groups).

    There are two kinds. *Monotone*: every letter preserves a linear order of states (q ≤ r gives q·a ≤ r·a), as in a
    counter that saturates. *Cascades of resets*: the state is a tuple; each letter keeps or sets each coordinate,
    depending on the coordinates before it. Every aperiodic machine is the minimal machine of some cascade of two-valued
    resets (Krohn & Rhodes 1965), but `max_states` may exclude this one. Shrinks towards one state, then towards the
    monotone kind and maps to state 0.
    """
    alphabet = _LETTERS[: draw(st.integers(1, min(max_letters, len(_LETTERS))))]
    if draw(st.booleans()):
        delta = _cascade_of_resets(draw, max_states, len(alphabet))
    else:
        n = draw(st.integers(1, max_states))
        row = st.lists(st.integers(0, n - 1), min_size=n, max_size=n).map(sorted)
        delta = [draw(row) for _ in alphabet]
    n = len(delta[0])
    omega = draw(st.lists(st.sampled_from(outputs), min_size=n, max_size=n))
    return MooreMachine(delta, omega, draw(st.integers(0, n - 1)), alphabet)


def _cascade_of_resets(draw: DrawFn, max_states: int, n_letters: int) -> list[list[int]]:
    sizes: list[int] = []
    states_left = max_states
    while states_left > 1 and draw(st.booleans()):
        sizes.append(draw(st.integers(2, states_left)))
        states_left //= sizes[-1]
    delta: list[list[int]] = []
    for _ in range(n_letters):
        targets: dict[tuple[int, ...], tuple[int, ...]] = {(): ()}
        for size in sizes:
            longer: dict[tuple[int, ...], tuple[int, ...]] = {}
            for before, after in targets.items():
                value = draw(st.integers(0, size))  # `size` stands for "as it is"
                longer |= {(*before, x): (*after, x if value == size else value) for x in range(size)}
            targets = longer
        number = {state: q for q, state in enumerate(targets)}
        delta.append([number[target] for target in targets.values()])
    return delta


@st.composite
def wreath_products(
    draw: DrawFn, max_states: int = 12, max_letters: int = 3, outputs: Sequence[Hashable] = (0, 1, 2)
) -> MooreMachine:
    """Draw a machine with congruences: a wreath product of small machines, as in Krohn & Rhodes (1965).

    Its state is a tuple. To each coordinate, a step applies a map (a permutation or any other) that depends on the
    letter and on the coordinates before it. Any state may be the start, and states may be unreachable or equivalent.
    Shrinks towards one state and maps to state 0.
    """
    alphabet = _LETTERS[: draw(st.integers(1, min(max_letters, len(_LETTERS))))]
    delta = np.zeros((len(alphabet), 1), np.int64)
    states_left = max_states
    while states_left > 1 and draw(st.booleans()):
        size = draw(st.integers(2, min(states_left, 5)))
        states_left //= size
        state = st.integers(0, size - 1)
        one_map = st.lists(state, min_size=size, max_size=size) | st.permutations(range(size))
        maps = [[draw(one_map) for _ in row] for row in delta]
        delta = (delta[:, :, None] * size + np.array(maps)).reshape(len(alphabet), -1)
    n = delta.shape[1]
    omega = draw(st.lists(st.sampled_from(outputs), min_size=n, max_size=n))
    return MooreMachine(delta, omega, draw(st.integers(0, n - 1)), alphabet)


def words(machine: MooreMachine, max_size: int = 20) -> SearchStrategy[list[Hashable]]:
    """Return a strategy of words over the machine's alphabet. Shrinks towards the empty word and the first letters."""
    return st.lists(st.sampled_from(machine.alphabet), max_size=max_size)


@st.composite
def block_transitions(
    draw: DrawFn, p: float = 1.2, b: int | None = None, heads: int | None = None, length: int | None = None
) -> Tensor:
    """Draw blocks whose columns have p-norm at most 1 in float64 (the paper's Eq. 6): float64, shape (T, H, b, b).

    Missing sizes are drawn: b and H from 1 … 4, T from 0 … 8. Entries start as multiples of ¼ in [−2, 2]; a column
    that is too long is divided by its norm, so that norms of exactly 1, between 0 and 1, and 0 all occur.
    Shrinks towards T = 0, one head, b = 1 and zeros.
    """
    length = draw(st.integers(0, 8)) if length is None else length
    heads = draw(st.integers(1, 4)) if heads is None else heads
    b = draw(st.integers(1, 4)) if b is None else b
    count = length * heads * b * b
    quarters = draw(st.lists(st.integers(-8, 8), min_size=count, max_size=count))
    A = torch.tensor(quarters, dtype=torch.float64).reshape(length, heads, b, b) / 4
    clipped = normalise(A, "clip", p)
    return torch.where(clipped == A, A, clipped / _MARGIN)


@st.composite
def recurrences(
    draw: DrawFn, max_heads: int = 3, max_block: int = 4, max_letters: int = 3, n_outputs: int = 3
) -> Recurrence:
    """Draw a recurrence of one layer: blocks of different sizes, in each a map or a reset per letter, any read-out.

    Every `DenseTables` within the bounds is possible, also one with letters that share a cell. The read-out computes
    `n_outputs` sums of the state with weights −1, 0 or 1. Shrinks towards one head of size 1, one letter and constant
    maps.
    """
    sizes = tuple(draw(st.lists(st.integers(1, max_block), min_size=1, max_size=max_heads)))
    n_letters = draw(st.integers(1, max_letters))
    cell = _cells(draw, n_letters)
    n_cells, n_heads, b = int(cell.max()) + 1, len(sizes), max(sizes)
    A = np.zeros((n_cells, n_heads, b, b), np.int8)
    v = np.zeros((n_cells, n_heads, b), np.int8)
    x0 = np.zeros((n_heads, b), np.int8)
    for h, size in enumerate(sizes):
        state = st.integers(0, size - 1)
        x0[h, draw(state)] = 1
        for c in range(n_cells):
            if draw(st.booleans()):
                v[c, h, draw(state)] = 1
            else:
                A[c, h, draw(st.lists(state, min_size=size, max_size=size)), np.arange(size)] = 1
    width = n_heads * b
    weights = draw(st.lists(st.integers(-1, 1), min_size=n_outputs * width, max_size=n_outputs * width))
    readout = DenseReadout(
        np.eye(width, dtype=np.int8),
        np.zeros(width, np.int8),
        np.array(weights, np.int8).reshape(n_outputs, width),
        np.zeros(n_outputs, np.int8),
    )
    return Recurrence(tuple(_LETTERS[:n_letters]), tuple(range(n_outputs)), DenseTables(A, v, x0, cell, sizes), readout)


def _cells(draw: DrawFn, n_letters: int) -> np.ndarray:
    cell = [0]
    while len(cell) < n_letters:
        cell.append(draw(st.integers(0, max(cell) + 1)))
    return np.array(cell)


def every_machine(n_states: int, n_letters: int, outputs: Sequence[Hashable] = (False, True)) -> Iterator[MooreMachine]:
    """Yield all n^(n·|Σ|)·|Γ|^n machines with n states and start 0, for proofs by exhaustion.

    >>> sum(1 for _ in every_machine(2, 2))
    64
    """
    states = range(n_states)
    for entries in itertools.product(states, repeat=n_letters * n_states):
        delta = np.reshape(entries, (n_letters, n_states))
        for omega in itertools.product(outputs, repeat=n_states):
            yield MooreMachine(delta, omega, 0, _LETTERS[:n_letters])
