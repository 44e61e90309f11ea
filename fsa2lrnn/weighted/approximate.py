"""Replace a weighted automaton by a smaller one with a certified error (Balle, Panangaden & Precup 2019; T66).

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
from fsa2lrnn.errors import NotExact, UnsupportedFormat
from fsa2lrnn.weighted.automaton import WeightedAutomaton, fraction

MAX_STATES = 200
_ROUNDS = 20_000
_RIDGES = (1e-15, 1e-13, 1e-11, 1e-8, 1e-5)


@dataclass(frozen=True)
class Approximation(Brief):
    """A smaller weighted automaton.

    Args:
        automaton: the smaller one.
        error: a certified bound on the square root of Σ_w |f(w) − g(w)|² over all words and outputs.
        singular_values: those of the Hankel matrix of f, descending, in floating point.
    """

    automaton: WeightedAutomaton
    error: float
    singular_values: tuple[float, ...]


def approximate(w: WeightedAutomaton, n_states: int) -> Approximation:
    """Return an automaton of `n_states` states near w, by its singular value automaton, with a certified error.

    Raises:
        UnsupportedFormat: unless 1 ≤ n_states ≤ w.n_states.
        NotExact: if Σ f(w)² was not found to be finite, or the error could not be certified.
        BudgetExceeded: for more than `MAX_STATES` states.
    """
    if not 1 <= n_states <= w.n_states:
        raise UnsupportedFormat(f"n_states = {n_states}: give a number from 1 to {w.n_states}")
    bounded(w.n_states, MAX_STATES, f"{w.n_states:,} states")
    alpha, maps, beta = floats(w._initial), [floats(A) for A in w._transitions], floats(w._final)
    reach, show = _root(gramian(alpha, maps)), _root(gramian(beta.T, [A.T for A in maps]))
    U, D, Vt = np.linalg.svd(show.T @ reach)
    scale = 1 / np.sqrt(np.maximum(D[:n_states], 1e-300))
    left, right = scale[:, None] * (U.T[:n_states] @ show.T), reach @ Vt.T[:, :n_states] * scale
    final = (beta @ right).tolist()
    small = WeightedAutomaton(
        w.alphabet, (left @ alpha)[:, 0], [left @ A @ right for A in maps], final if w.outputs else final[0], w.outputs
    )
    return Approximation(small, error_bound(w - small), tuple(D.tolist()))


def error_bound(d: WeightedAutomaton) -> float:
    """Return a certified bound on the square root of Σ_w |d(w)|² over all words and outputs.

    A symmetric P with P ≥ 0 and P ≥ α αᵀ + Σ_a A_a P A_aᵀ is at least Σ_w x_w x_wᵀ, so the sum is at most the trace of
    β P βᵀ (T66). Both conditions are checked in exact arithmetic. Raises `NotExact` if no such P is found.
    """
    alpha, maps = floats(d._initial), [floats(A) for A in d._transitions]
    exact = gramian(alpha, maps)
    for ridge in _RIDGES:
        size = ridge * max(np.trace(exact), 1e-300)
        P = rational(exact + gramian(math.sqrt(size) * np.eye(len(exact)), maps))
        rest = P - d._initial * d._initial.transpose()
        for A in d._transitions:
            rest -= A * P * A.transpose()
        if is_positive(P) and is_positive(rest):
            total = sum((x for x in _diagonal(d._final * P * d._final.transpose())), fmpq(0))
            root = math.sqrt(float(fraction(total)))
            return root if Fraction(root) ** 2 >= fraction(total) else math.nextafter(root, math.inf)
    raise NotExact("the error could not be certified: the difference hardly contracts; keep more states")


def gramian(start: np.ndarray, maps: Sequence[np.ndarray]) -> np.ndarray:
    """Return Σ_w A_w s sᵀ A_wᵀ in floating point, (n, n); raise `NotExact` if it does not converge."""
    total = term = start @ start.T
    for _ in range(_ROUNDS):
        check_current("the Gramian of a weighted automaton")
        term = sum((A @ term @ A.T for A in maps), np.zeros_like(term))
        total = total + term
        size = float(np.abs(term).max(initial=0))
        if not size < 1e200:
            break
        if size <= 1e-17 * float(np.abs(total).max(initial=0)):
            return (total + total.T) / 2
    raise NotExact("the squares of the values were not found to have a finite sum: only automata that contract have it")


def is_positive(matrix: fmpq_mat) -> bool:
    """Return whether a symmetric matrix is proved positive definite: K M Kᵀ, for a regular K, is diagonally dominant."""
    values = floats(matrix)
    try:
        K = rational(np.tril(np.linalg.inv(np.linalg.cholesky((values + values.T) / 2))))
    except np.linalg.LinAlgError:
        return False
    rows = (K * matrix * K.transpose()).tolist()
    regular = all(K[i, i] != 0 for i in range(K.nrows()))  # it is triangular
    return regular and all(2 * row[i] > sum((abs(x) for x in row), fmpq(0)) for i, row in enumerate(rows))


def _root(gram: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0))


def _diagonal(matrix: fmpq_mat) -> list[fmpq]:
    return [matrix[i, i] for i in range(matrix.nrows())]


def floats(matrix: fmpq_mat) -> np.ndarray:
    """Return a matrix in floating point."""
    return np.array([int(x.p) / int(x.q) for x in matrix.entries()]).reshape(matrix.nrows(), matrix.ncols())


def rational(matrix: np.ndarray) -> fmpq_mat:
    """Return a matrix of floats exactly."""
    return fmpq_mat(*matrix.shape, [fmpq(*x.as_integer_ratio()) for x in matrix.flatten().tolist()])
