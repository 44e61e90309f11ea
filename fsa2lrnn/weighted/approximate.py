"""Replace a weighted automaton by a smaller one with a certified error (Balle, Panangaden & Precup 2019; T67).

The Gramians Σ x_w x_wᵀ of the vectors of words, and of the functionals of suffixes, give the singular values of the
Hankel matrix and a basis in which small directions can be left out. The error, the square root of Σ_w |f(w) − g(w)|²
over all words, is bounded by exact arithmetic, whatever the floating-point search did.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.deadline import bounded, check_current
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import NotExact
from fsa2lrnn.reading import check_whole
from fsa2lrnn.weighted.weighted_automaton import WeightedAutomaton, as_weighted, fraction

MAX_STATES = 200
_ROUNDS = 20_000
_RIDGES = (1e-15, 1e-13, 1e-11, 1e-8, 1e-5)


@dataclass(frozen=True)
class Approximation(Brief):
    """A smaller weighted automaton g for f.

    Args:
        automaton: g.
        error: a certified bound on the square root of Σ_w |f(w) − g(w)|² over all words and outputs.
        singular_values: those of the Hankel matrix of f, descending, in floating point.
    """

    automaton: WeightedAutomaton
    error: float
    singular_values: tuple[float, ...]


def approximate(w: WeightedAutomaton, n_states: int) -> Approximation:
    """Return an automaton of `n_states` states near w, by its singular value automaton, with a certified error.

    Raises `UnsupportedFormat` unless 1 ≤ n_states ≤ w.n_states, `BudgetExceeded` for more than 200 states, and
    `NotExact` if Σ f(w)² was not found to be finite, or the error could not be certified.
    """
    check_whole(n_states, "n_states", as_weighted(w).n_states)
    bounded(w.n_states, MAX_STATES, f"{w.n_states:,} states")
    alpha, beta, *maps = map(_floats, (w._initial, w._final, *w._transitions))
    reach, show = _root(gramian(alpha, maps)), _root(gramian(beta.T, [A.T for A in maps]))
    U, D, Vt = np.linalg.svd(show.T @ reach)
    scale = 1 / np.sqrt(np.maximum(D[:n_states], 1e-300))
    left, right = scale[:, None] * (U.T[:n_states] @ show.T), reach @ Vt.T[:, :n_states] * scale
    final, transitions = beta @ right, [left @ A @ right for A in maps]
    rows = final if w.outputs is not None else final[0]
    small = WeightedAutomaton(w.alphabet, (left @ alpha)[:, 0], transitions, rows, w.outputs)
    return Approximation(small, error_bound(w - small), tuple(D.tolist()))


def error_bound(d: WeightedAutomaton) -> float:
    """Return a certified bound on the square root of Σ_w |d(w)|² over all words and outputs.

    A symmetric P with P ≥ 0 and P ≥ α αᵀ + Σ_a A_a P A_aᵀ is at least Σ_w x_w x_wᵀ, so the sum is at most the trace of
    β P βᵀ (T67). Both conditions are checked in exact arithmetic. Raises `NotExact` if no such P is found.
    """
    alpha, *maps = map(_floats, (as_weighted(d)._initial, *d._transitions))
    found = gramian(alpha, maps)
    for ridge in _RIDGES:
        size = math.sqrt(ridge * max(np.trace(found), 1e-300))
        P = _exactly(found + gramian(size * np.eye(len(found)), maps))
        rest = P - d._initial * d._initial.transpose()
        for A in d._transitions:
            rest -= A * P * A.transpose()
        if is_positive(P) and is_positive(rest):
            squares = d._final * P * d._final.transpose()
            total = sum((fraction(squares[i, i]) for i in range(squares.nrows())), Fraction(0))
            return math.sqrt(total) * (1 + 2.0**-50)
    raise NotExact("the error could not be certified: the difference hardly contracts; keep more states")


def gramian(start: np.ndarray, maps: Sequence[np.ndarray]) -> np.ndarray:
    """Return Σ_w A_w s sᵀ A_wᵀ in floating point, (n, n); raise `NotExact` if it does not converge."""
    total = term = start @ start.T
    for _ in range(_ROUNDS):
        check_current("the Gramian of a weighted automaton")
        term = sum((A @ term @ A.T for A in maps), np.zeros_like(term))
        total = total + term
        size = float(np.abs(term).max(initial=0))
        if size <= 1e-17 * float(np.abs(total).max(initial=0)):
            return (total + total.T) / 2
        if not size < 1e200:
            break
    raise NotExact("the squares of the values were not found to have a finite sum: only automata that contract have it")


def is_positive(matrix: fmpq_mat) -> bool:
    """Return whether a symmetric matrix M is proved positive definite: K M Kᵀ is diagonally dominant, K regular."""
    values = _floats(matrix)
    try:
        K = _exactly(np.tril(np.linalg.inv(np.linalg.cholesky((values + values.T) / 2))))
    except np.linalg.LinAlgError:
        return False
    rows = (K * matrix * K.transpose()).tolist()
    is_regular = all(K[i, i] != 0 for i in range(K.nrows()))  # it is triangular
    return is_regular and all(2 * row[i] > sum((abs(x) for x in row), fmpq(0)) for i, row in enumerate(rows))


def _root(gram: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0))


def _floats(matrix: fmpq_mat) -> np.ndarray:
    try:
        numbers = [int(x.p) / int(x.q) for x in matrix.entries()]
    except OverflowError:
        raise NotExact("a number is beyond the largest float: scale the automaton") from None
    return np.array(numbers).reshape(matrix.nrows(), matrix.ncols())


def _exactly(matrix: np.ndarray) -> fmpq_mat:
    return fmpq_mat(len(matrix), matrix.shape[1], [fmpq(*x.as_integer_ratio()) for x in matrix.flatten().tolist()])
