"""Functions on exact rational matrices that python-flint does not provide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat, fmpz, nmod_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.errors import NotExact

PRIME = 67_108_859  # below 2²⁶: sums of 2,000 products of residues stay inside 63 bits


def matrix(rows: Sequence[Sequence[object]], columns: int) -> fmpq_mat:
    """Return the rational matrix with these rows, of which there may be none."""
    entries: list[Any] = [entry for row in rows for entry in row]
    return fmpq_mat(len(rows), columns, entries)


def identity(d: int) -> fmpq_mat:
    return fmpq_mat(d, d, [int(i == j) for i in range(d) for j in range(d)])


def zero(d: int) -> nmod_mat:
    """Return the zero matrix (d, d) modulo `PRIME`."""
    return nmod_mat(d, d, PRIME)


@lru_cache(maxsize=64)
def one(d: int) -> nmod_mat:
    """Return the identity (d, d) modulo `PRIME`."""
    return nmod_mat(d, d, [int(i == j) for i in range(d) for j in range(d)], PRIME)


def stack(parts: Iterable[fmpq_mat], columns: int) -> fmpq_mat:
    """Return matrices with `columns` columns stacked vertically."""
    parts = [part for part in parts if part.nrows()]
    entries = [entry for part in parts for entry in part.entries()]
    return fmpq_mat(sum(part.nrows() for part in parts), columns, entries)


def rows_of(matrix: fmpq_mat, chosen: Iterable[int]) -> fmpq_mat:
    columns = matrix.ncols()
    chosen = list(chosen)
    return fmpq_mat(len(chosen), columns, [matrix[i, j] for i in chosen for j in range(columns)])


def each_row(matrix: fmpq_mat) -> list[fmpq_mat]:
    """Return the rows as matrices of one row each."""
    return [rows_of(matrix, [i]) for i in range(matrix.nrows())]


def columns_of(matrix: fmpq_mat, chosen: Iterable[int]) -> fmpq_mat:
    chosen = list(chosen)
    return fmpq_mat(matrix.nrows(), len(chosen), [matrix[i, j] for i in range(matrix.nrows()) for j in chosen])


def row_space(matrix: fmpq_mat) -> fmpq_mat:
    """Return the nonzero rows of the reduced row echelon form.

    >>> row_space(fmpq_mat(2, 2, [2, 4, 1, 2])).tolist()
    [[1, 2]]
    """
    if not matrix.nrows():
        return matrix
    reduced, rank = matrix.rref()
    return rows_of(reduced, range(rank))


def pivots(reduced: fmpq_mat) -> list[int]:
    """Return the pivot column of each row of a matrix in reduced row echelon form."""
    return [next(j for j in range(reduced.ncols()) if reduced[i, j] != 0) for i in range(reduced.nrows())]


def left_kernel(matrix: fmpq_mat) -> fmpq_mat:
    """Return a basis of the integer rows x with x · matrix = 0.

    >>> left_kernel(fmpq_mat(2, 1, [1, fmpq(1, 2)])).tolist()
    [[1, -2]]
    """
    d = matrix.nrows()
    if not matrix.ncols():
        return identity(d)
    # One common denominator does not change the kernel, so that it can be computed over the integers.
    numerators, _ = matrix.transpose().numer_denom()
    kernel, nullity = numerators.nullspace()
    return primitive(fmpq_mat(nullity, d, [kernel[i, j] for j in range(nullity) for i in range(d)]))


def primitive(matrix: fmpq_mat) -> fmpq_mat:
    """Return a matrix with each row scaled by a positive number to integers without a common divisor."""
    columns = matrix.ncols()
    rows = [_lowest(fmpq_mat(1, columns, row)) for row in matrix.tolist()]
    return fmpq_mat(matrix.nrows(), columns, [entry for row in rows for entry in row])


def together_primitive(matrix: fmpq_mat) -> fmpq_mat:
    """Return a matrix scaled by one positive number to integers without a common divisor."""
    return fmpq_mat(matrix.nrows(), matrix.ncols(), _lowest(matrix))


def _lowest(matrix: fmpq_mat) -> list[fmpz]:
    entries, common = matrix.numer_denom()[0].entries(), fmpz(0)
    for entry in entries:
        common = common.gcd(entry)
        if common == 1:
            break
    return [entry // common for entry in entries] if common > 1 else entries


def modular(matrix: fmpq_mat) -> nmod_mat:
    """Return a rational matrix modulo `PRIME`; raise `NotExact` if `PRIME` divides a denominator."""
    numerators, denominator = matrix.numer_denom()
    if int(denominator) % PRIME == 0:
        raise NotExact(f"the prime {PRIME:,} divides a denominator: please report this machine")
    return nmod_mat(numerators, PRIME) * pow(int(denominator) % PRIME, -1, PRIME)


def residues(matrix: fmpq_mat) -> np.ndarray:
    """Return the entries of a rational matrix modulo `PRIME`, int64 of the same shape; raise as `modular` does."""
    entries = np.array([int(entry) for entry in modular(matrix).entries()], np.int64)
    return entries.reshape(matrix.nrows(), matrix.ncols())


def rank(matrix: fmpq_mat) -> int:
    return matrix.rank() if matrix.nrows() and matrix.ncols() else 0


def coordinates(row: fmpq_mat, basis: fmpq_mat) -> fmpq_mat:
    """Return the coefficients of a row in a basis of reduced rows; raise `NotExact` if it lies outside their span."""
    chosen = pivots(basis)
    # In a reduced basis every pivot column has a single 1: the entries there are the coefficients.
    coefficients = columns_of(row, chosen)
    if coefficients * basis != row:
        raise NotExact("a row lies outside of the space that must hold it: please report this machine")
    return coefficients


def dot(row: fmpq_mat, other: fmpq_mat) -> fmpq:
    """Return the scalar product of two rows."""
    return (row * other.transpose())[0, 0]
