"""Decide whether one SLiCE represents a machine (T59 of docs/theory.md), and write the PD-SSM that represents any.

A SLiCE computes y ← y + A(u) y, without an input after the first letter. Functions that decide it take the table
(|Σ|, m) of the states that non-empty words reach (`after_a_letter`). A PD-SSM computes h ← D·(P h) + B x with one-hot
rows of P and |D| in [0, 1], so each coordinate copies another and adds a number. It represents every machine by its
dual (docs/constructions.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
from flint import fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import bounded, check_current
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.families.closure import left_kernel, obstruction, primitive
from fsa2lrnn.families.identities import FORCED

_MOST_LETTERS = 8  # whose subsets are all tried


def after_a_letter(machine: MooreMachine) -> np.ndarray:
    """Return the table (|Σ|, m) of the states that non-empty words reach.

    >>> after_a_letter(MooreMachine([[1, 1]], [0, 1])).tolist()
    [[0]]
    """
    delta = machine.delta
    states = sorted({int(q) for q in delta[:, machine.start]})
    for q in states:  # grows
        states += sorted({int(p) for p in delta[:, q]} - set(states))
    states.sort()
    return np.searchsorted(states, delta[:, states])


def is_diagonal(delta: np.ndarray) -> bool:
    """Return whether functions with f ∘ δ_a = χ(a) f, χ(a) real, separate the states: one layer of diagonal SLiCE.

    T3 decides this: f is an affine function that is 0 at an added state, which all letters keep, and to which one more
    letter sends all states.
    """
    n = delta.shape[1]
    # State n is the added one, and the last row is the added letter.
    with_zero = np.vstack([np.column_stack([delta, np.full(len(delta), n)]), np.full(n + 1, n)])
    return obstruction(FORCED["diagonal[-1,1]"], with_zero).merged()[1] == n + 1


def has_register(delta: np.ndarray) -> bool:
    """Return whether words e and f act on two states p and q as a register: both go to p by e, and both to q by f."""
    letters, n = np.unique(delta, axis=0), delta.shape[1]
    bounded(n**3, 30_000_000, f"triples of {n:,} states")
    merging = np.zeros((n, n, n), bool)  # [p, x, y]: some word leads both x and y to p
    states = np.arange(n)
    # The empty word leads x and y to p if x = y = p; each round puts letters before the words known so far.
    merging[states, states, states] = True
    while True:
        check_current("searching for a register")
        count = merging.sum()
        for step in letters:
            merging |= merging[:, step][:, :, step]
        first = merging[states, states]  # [p, q]: (p, q) goes to p
        if (first & first.T).sum() > n:
            return True
        if merging.sum() == count:
            return False


def is_walsh_hadamard(delta: np.ndarray) -> bool | None:
    """Return whether one layer of Walsh–Hadamard SLiCE represents the states; None if T59 does not decide it.

    >>> is_walsh_hadamard(np.array([[1, 0, 2], [1, 2, 0]])), is_walsh_hadamard(np.array([[0, 0], [1, 1]]))
    (True, False)
    """
    steps = np.unique(delta, axis=0)
    steps = steps[(steps != np.arange(delta.shape[1])).any(axis=1)]
    if _clash(steps):
        return False
    if _separates(steps):
        return True
    permutations = steps[(np.sort(steps, axis=1) == np.arange(delta.shape[1])).all(axis=1)]
    # T59 (b): for permutations, the functions of `_separates` are all that there are.
    if len(permutations) > _MOST_LETTERS or (len(permutations) < len(steps) and _separates(permutations)):
        return None
    return False


def _clash(steps: np.ndarray) -> bool:
    """Return whether two letters act on a pair of states as two maps other than the identity (T59 (b))."""
    n = steps.shape[1]
    bounded(n * steps.size, 5_000_000, f"pairs of {n:,} states with {len(steps):,} letters")
    p, q = np.triu_indices(n, 1)
    before, after = np.stack([p, q]), steps[:, np.stack([p, q])]  # (2, pairs), (|Σ|, 2, pairs)
    is_closed = ((after == p) | (after == q)).all(axis=1)
    # The four maps of a pair {p, q} to itself: 0 and 3 are constant, 2 is the identity and 1 the exchange.
    kinds = (after[:, 0] == q) + 2 * (after[:, 1] == q)
    moves = is_closed & (after != before).any(axis=1)
    present = [(moves & (kinds == kind)).any(axis=0) for kind in range(4)]
    return bool((np.sum(present, axis=0, dtype=int) > 1).any()) if len(steps) else False


def _separates(steps: np.ndarray) -> bool:
    """Return whether a space of functions that letters preserve separates the states, spanned by functions g of T59.

    Of such a function, each letter gives g itself or one other function, the same for all letters.
    """
    n = steps.shape[1]
    classes = list(_classes(steps))
    functions = np.eye(n, dtype=int).astype(object)
    while True:
        check_current("deciding Walsh–Hadamard SLiCE")
        if len({tuple(column) for column in functions.T.tolist()}) < n:
            return False
        smaller = _largest_closed(_span(functions, classes), steps)
        if len(smaller) == len(functions):
            return True
        functions = smaller


def _classes(steps: np.ndarray) -> Iterator[np.ndarray]:
    """Yield partitions of the states, (m,): g ∘ δ_a = g for some letters, and one g ∘ δ_a for all others."""
    k = len(steps)
    sizes = range(k + 1) if k <= _MOST_LETTERS else (0, 1, 2, k)
    for size in sizes:
        for moving in itertools.combinations(range(k), size):
            # g ∘ δ_a = g identifies each state with its image; g ∘ δ_a = g ∘ δ_b identifies the images under both
            # letters.
            number = np.arange(steps.shape[1])
            equal = [(number, steps[a]) for a in set(range(k)) - set(moving)]
            equal += [(steps[moving[0]], steps[a]) for a in moving[1:]]
            yield _components(equal, number)


def _components(pairs: list[tuple[np.ndarray, np.ndarray]], number: np.ndarray) -> np.ndarray:
    """Return the finest partition with the same class for the states of each pair."""
    while True:
        before = number
        for p, q in pairs:
            least = np.minimum(number[p], number[q])
            number = number.copy()
            np.minimum.at(number, p, least)
            np.minimum.at(number, q, least)
        if (number == before).all():
            return number


def _span(functions: np.ndarray, classes: list[np.ndarray]) -> np.ndarray:
    """Return a basis of the sum of the functions that are constant on the classes of one of the partitions."""
    rows = functions[:0]
    for number in classes:
        if len(rows) < len(functions):
            # Combinations of the functions that take the same value on a state and on the representative of its
            # class.
            part = left_kernel(functions - functions[:, number]) @ functions
            rows = _reduced(np.vstack([rows, part]))
    return rows


def _reduced(rows: np.ndarray) -> np.ndarray:
    if not rows.size:
        return rows
    reduced, _, rank = fmpz_mat(rows.tolist()).rref()
    return primitive(np.array([[int(x) for x in row] for row in reduced.tolist()[:rank]], dtype=object))


def _largest_closed(functions: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return a basis of the largest subspace that f ↦ f ∘ δ_a preserves, as integers, exactly."""
    while True:
        moved = [functions[:, step] for step in steps]
        # A function lies in the span iff all rows of `outside` are orthogonal to it; the kernel of `images` keeps the
        # combinations whose images do.
        outside = left_kernel(functions.T)  # rows w with f · w = 0 for all f of the span
        images = np.hstack([after @ outside.T for after in moved]) if len(outside) else np.zeros((len(functions), 0))
        if not images.any():
            return functions
        functions = left_kernel(images) @ functions


MAX_COORDINATES = 512
ONE, ZERO = 0, 1  # the coordinates that always hold 1 and 0


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual of a machine: an implementation by layers h ← P h + b with one-hot rows of P and small integers.

    h is e₁ at the start. A new coordinate is an old one plus a number, so coordinates are functions of the state: an
    indicator of an output, φ(q) = [ω(q) = γ], and its compositions with words, φ∘a. The entry of h for φ is φ(q) −
    φ(q₀). There are about as many coordinates as the determinised reversed machine has states: at worst 2ⁿ, for a group
    at most its order per output.

    Args:
        machine: the minimal machine.
        sources: the coordinate that each coordinate copies at a letter, int64 (|Σ|, N).
        added: the numbers that are added to the copies, −1, 0 or 1, int64 (|Σ|, N).
        shown: the coordinate of each output but the first, int64 (|Γ| − 1,).
        at_start: 1 for that of these outputs that the machine has at the start, otherwise 0, int64 (|Γ| − 1,).
    """

    machine: MooreMachine
    sources: np.ndarray
    added: np.ndarray
    shown: np.ndarray
    at_start: np.ndarray

    @property
    def n_coordinates(self) -> int:
        return self.sources.shape[1]

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """The distinct outputs of the machine, in the order of its states."""
        return tuple(dict.fromkeys(self.machine.outputs))

    def start(self) -> np.ndarray:
        """Return the state h before a word, int64 (N,)."""
        return np.eye(self.n_coordinates, dtype=np.int64)[ONE]

    def step(self, h: np.ndarray, a: int) -> np.ndarray:
        """Return the state after letter number a: int64 (N,) -> (N,)."""
        return h[self.sources[a]] + self.added[a]

    def output(self, h: np.ndarray) -> Hashable:
        scores = h[self.shown] + self.at_start
        return self.outputs[0 if not scores.any() else 1 + int(scores.argmax())]


def dual(machine: MooreMachine, limit: int = MAX_COORDINATES) -> Dual:
    """Return the dual of the minimal machine; raise `BudgetExceeded` beyond `limit` coordinates.

    >>> from fsa2lrnn.automata import zoo
    >>> run = dual(zoo.sum_mod(5))
    >>> h = run.start()
    >>> for letter in (3, 4, 1):
    ...     h = run.step(h, letter)
    >>> run.n_coordinates, run.output(h)
    (7, 3)
    """
    minimal = minimise(machine)
    outputs = tuple(dict.fromkeys(minimal.outputs))
    numbers = {np.zeros(minimal.n_states, np.int64).tobytes(): ZERO}
    functions = list[np.ndarray]()

    def number(values: np.ndarray) -> int:
        code = numbers.setdefault(values.tobytes(), len(functions) + 2)
        if code == len(functions) + 2:
            functions.append(values)
            if code >= limit:
                raise BudgetExceeded(
                    f"the dual of these {minimal.n_states:,} states has more than {limit:,} coordinates, and every "
                    "letter takes a matrix of their square: give a smaller machine"
                )
        return code

    # The first output needs no indicator: it is shown where all others are 0.
    indicators = [np.array([output == target for output in minimal.outputs], np.int64) for target in outputs[1:]]
    at_start = np.array([values[minimal.start] for values in indicators], np.int64)
    shown = np.array([number(v - v[minimal.start]) for v in indicators], np.int64)
    rows = [[(ONE, 0), (ZERO, 0)] for _ in minimal.delta]
    for values in functions:  # grows
        for row, letter in zip(rows, minimal.delta, strict=True):
            after = values[letter]
            # h holds φ(q) − φ(q₀). After the letter that is φ∘a(q) − φ∘a(q₀), a coordinate, plus the constant φ(q₀·a)
            # − φ(q₀), and values[start] = 0.
            row.append((number(after - after[minimal.start]), int(after[minimal.start])))
    table = np.array(rows, np.int64)
    return Dual(minimal, table[..., 0], table[..., 1], shown, at_start)
