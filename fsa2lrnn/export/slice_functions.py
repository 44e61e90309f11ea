"""Decide whether one diagonal or Walsh–Hadamard SLiCE represents a machine (T59 of docs/theory.md).

SLiCE computes y ← y + A(u) y, without an input after the first letter. Functions take the table (|Σ|, m) of the states
that non-empty words reach (`after_a_letter`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from flint import fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import bounded, check_current
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
    with_zero = np.vstack([np.column_stack([delta, np.full(len(delta), n)]), np.full(n + 1, n)])
    return obstruction(FORCED["diagonal[-1,1]"], with_zero).merged()[1] == n + 1


def has_register(delta: np.ndarray) -> bool:
    """Return whether words e and f act on two states p and q as a register: both go to p by e, and both to q by f."""
    letters, n = np.unique(delta, axis=0), delta.shape[1]
    bounded(n**3, 30_000_000, f"triples of {n:,} states")
    merging = np.zeros((n, n, n), bool)  # [p, x, y]: some word leads both x and y to p
    states = np.arange(n)
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
    # T59 (c): for permutations, the functions of `_separates` are all that there are.
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
        outside = left_kernel(functions.T)  # rows w with f · w = 0 for all f of the span
        images = np.hstack([after @ outside.T for after in moved]) if len(outside) else np.zeros((len(functions), 0))
        if not images.any():
            return functions
        functions = left_kernel(images) @ functions
