"""Compute the obstruction space W of a family exactly (T3 of docs/theory.md).

W is the smallest subspace of Z = span{e_p − e_q} that is closed under every letter and contains the vectors
(M_u − M_u')(e_s − e_t), which the family's identities force to be zero. A basis is generated modulo a prime, so that
its vectors are small integers with a known origin. It is then checked over the rationals that they span all of W, by
their annihilator: the functions f of the state with f·w = 0 for every w in W.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpq_mat, fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.deadline import check_current
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.families.identities import Family, Identity, RunLengthWord, identities

MAX_STATES = 1_000  # of a minimal machine: matrices of this size take 8 MB in int64, 40 MB as Python's integers
_PRIMES = (67_108_859, 67_108_837, 67_108_819)  # below 2²⁶: sums of 2,000 products of residues stay inside 63 bits


@dataclass(frozen=True)
class Origin:
    """The origin of a vector of W: the image of (M_u − M_u')(e_s − e_t), or a commutator's, under the word `then`."""

    source: int
    target: int
    words: tuple[RunLengthWord, ...]
    then: tuple[int, ...]


@dataclass(frozen=True)
class Obstruction(Brief):
    """The obstruction space W, given by a basis, and its annihilator.

    Args:
        basis: independent vectors that span W, int64, shape (r, n).
        origins: the origin of each.
        functions: a basis of the f with f·w = 0 on W, Python integers, shape (n − r, n); the span contains constants.
    """

    basis: np.ndarray
    origins: tuple[Origin, ...]
    functions: np.ndarray

    def merged(self) -> tuple[np.ndarray, int]:
        """Return a class number for each state (equal if no function separates them) and the number of classes."""
        number: dict[tuple[int, ...], int] = {}
        columns = [tuple(column) for column in self.functions.T.tolist()]
        return np.array([number.setdefault(column, len(number)) for column in columns]), len(number)


def obstruction(family: Family, delta: np.ndarray) -> Obstruction:
    """Return the obstruction space W of T3 for a family and the table (|Σ|, n) of a minimal machine.

    Raises:
        BudgetExceeded: for more than `MAX_STATES` states.
        NotExact: if the space generated modulo each of three primes is smaller than W.
        OutOfTime: if the current deadline passes (`deadline.limited`).
    """
    if (n := delta.shape[1]) > MAX_STATES:
        raise BudgetExceeded(
            f"memory limit: {n:,} states of the minimal machine, and at most {MAX_STATES:,} are decided"
        )
    forced = list(identities(family, delta))
    for prime in _PRIMES:
        # Independence modulo a prime implies independence over ℚ, so the basis spans a subspace of W.
        # If its annihilator satisfies all equations over ℚ, that subspace is W.
        basis, origins = _spin(forced, delta, prime)
        functions = left_kernel(basis.T) if len(basis) else np.eye(delta.shape[1], dtype=int).astype(object)
        if _is_closed(functions, basis, forced, delta):
            return Obstruction(basis, origins, functions)
    raise NotExact(f"the obstruction space came out too small modulo each of the primes {_PRIMES}")


def _spin(forced: list[Identity], delta: np.ndarray, prime: int) -> tuple[np.ndarray, tuple[Origin, ...]]:
    """Return integer vectors (k, n) that are a basis of W modulo a prime, with the origin of each.

    W is the least space that contains the forced differences and that all letters map into itself. Each basis vector is
    mapped by all letters once; images independent of the basis join it.
    """
    n = delta.shape[1]
    echelon = Echelon(n, prime)
    basis: list[np.ndarray] = []
    origins: list[Origin] = []
    for identity in forced:
        vectors = _forced_zero(identity, n)
        for s in echelon.independent(vectors):
            basis.append(vectors[s])
            # Row s of `vectors` comes from e_{s+1} − e_0.
            origins.append(Origin(int(s) + 1, 0, identity.words, ()))
    k = 0
    # W lies in Z, of dimension n − 1: with that many vectors it is all of Z.
    while k < len(basis) and len(basis) < n - 1:
        check_current("deciding a family")
        images = np.zeros((len(delta), n), np.int64)
        for a, step in enumerate(delta):
            # (M_a w)[q'] is the sum of w[q] over all q with δ(q, a) = q'. The 1-norm never grows, so that int64
            # suffices.
            np.add.at(images[a], step, basis[k])
        origin = origins[k]
        for a in echelon.independent(images):
            basis.append(images[a])
            origins.append(Origin(origin.source, origin.target, origin.words, (*origin.then, int(a))))
        k += 1
    return np.array(basis, np.int64).reshape(len(basis), n), tuple(origins)


def _forced_zero(identity: Identity, n: int) -> np.ndarray:
    """Return (M_u − M_u')(e_s − e_0) for s = 1 … n−1: int64, shape (n−1, n)."""
    vectors, rows = np.zeros((n - 1, n), np.int64), np.arange(n - 1)
    for image, sign in zip(identity.maps, identity.signs, strict=True):
        np.add.at(vectors, (rows, image[1:]), sign)
        vectors[:, image[0]] -= sign
    return vectors


class Echelon:
    """A set of row-reduced vectors modulo a prime, to which independent vectors can be added."""

    def __init__(self, n: int, prime: int) -> None:
        self._prime, self._rows = prime, np.zeros((0, n), np.int64)
        self._pivots = np.zeros(0, np.int64)

    @property
    def rank(self) -> int:
        """The number of stored vectors."""
        return len(self._rows)

    def is_new(self, vectors: np.ndarray) -> bool:
        """Return whether some of the vectors (m, n) is independent of the stored ones."""
        rest = vectors % self._prime
        # The stored rows are fully reduced: in each pivot column one row has a 1 and the others a 0.
        return bool(((rest - rest[:, self._pivots] @ self._rows) % self._prime).any())

    def independent(self, vectors: np.ndarray) -> list[int]:
        """Store those of the vectors (m, n) that are independent of all stored before, and return their indices."""
        prime, indices = self._prime, list[int]()
        rest = vectors % prime
        if len(self._rows):
            rest = (rest - rest[:, self._pivots] @ self._rows) % prime
        for i in range(len(rest)):
            row = rest[i]
            nonzero = np.flatnonzero(row)
            if not len(nonzero):
                continue
            pivot = int(nonzero[0])
            row = row * pow(int(row[pivot]), -1, prime) % prime
            # The new pivot column is cleared in the stored rows and in the vectors still to come.
            self._rows = (self._rows - np.outer(self._rows[:, pivot], row)) % prime
            rest = (rest - np.outer(rest[:, pivot], row)) % prime
            self._rows = np.vstack([self._rows, row])
            self._pivots = np.append(self._pivots, pivot)
            indices.append(i)
        return indices


def _is_closed(functions: np.ndarray, basis: np.ndarray, forced: list[Identity], delta: np.ndarray) -> bool:
    for identity in forced:
        # f vanishes on all (M_u − M_u')(e_s − e_t) iff f∘δ_u − f∘δ_u' is constant.
        difference = np.zeros_like(functions)
        for image, sign in zip(identity.maps, identity.signs, strict=True):
            difference = difference + sign * functions[:, image]
        if (difference != difference[:, :1]).any():
            return False
    # The span of the basis is closed under a letter iff f∘δ_a vanishes on it for every f of its annihilator.
    columns = basis.T.astype(object)
    return not len(basis) or all(not (functions[:, step] @ columns).any() for step in delta)


def primitive(rows: np.ndarray) -> np.ndarray:
    """Return integer rows, each divided by the greatest common divisor of its entries."""
    divisors = np.gcd.reduce(rows, axis=1, keepdims=True) if rows.size else rows
    return rows // np.where(divisors == 0, 1, divisors) if rows.size else rows


def left_kernel(matrix: np.ndarray) -> np.ndarray:
    """Return a basis of the integer rows c with c · matrix = 0."""
    k = len(matrix)
    kernel, nullity = fmpz_mat(matrix.T.tolist()).nullspace()
    rows = [[int(kernel[i, j]) for i in range(k)] for j in range(nullity)]
    return primitive(np.array(rows, dtype=object).reshape(nullity, k))


def pivot_columns(rows: np.ndarray) -> list[int]:
    """Return the pivot column of each row of the reduced row echelon form of an integer matrix."""
    reduced, _, rank = fmpz_mat(rows.tolist()).rref()
    return [next(j for j in range(rows.shape[1]) if reduced[i, j] != 0) for i in range(rank)]


def fractions_of(matrix: fmpq_mat) -> np.ndarray:
    """Return the entries of a rational matrix as an object array of `Fraction`, of the same shape."""
    rows = [[Fraction(int(x.p), int(x.q)) for x in row] for row in matrix.tolist()]
    return np.array(rows, dtype=object).reshape(matrix.nrows(), matrix.ncols())
