"""Integer coordinates for an input-independent layer: vectors x_q with x_{δ(q,a)} = A x_q + v(a), all of them integer.

The differences x_q − x_start generate a lattice that A maps to itself; in a basis of it, A, v and x are integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import fmpq_mat, fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.errors import NotExact
from fsa2lrnn.families.closure import fractions_of, pivot_columns
from fsa2lrnn.families.lanes import basis_zero_at


@dataclass(frozen=True)
class Affine:
    """x ↦ A x + v(a): A (d, d), shifts (|Σ|, d), vectors (n, d), all Python integers; the start is at 0."""

    A: tuple[tuple[int, ...], ...]
    shifts: tuple[tuple[int, ...], ...]
    vectors: tuple[tuple[int, ...], ...]

    @property
    def dimension(self) -> int:
        """The dimension d."""
        return len(self.A)


def integer_affine(functions: np.ndarray, delta: np.ndarray, start: int) -> Affine:
    """Return integer coordinates of an input-independent layer from the functions (k, n) that vanish on its W."""
    coordinates = basis_zero_at(functions, start)  # (d, n)
    d, n = coordinates.shape
    if d == 0:
        return Affine((), tuple(() for _ in delta), tuple(() for _ in range(n)))
    hermite = fmpz_mat(coordinates.T.tolist()).hnf()
    basis = fmpz_mat([[hermite[i, j] for j in range(d)] for i in range(d)]).lll()
    vectors = _integers(fmpq_mat(fmpz_mat(coordinates.T.tolist())) * fmpq_mat(basis).inv())
    shifts = vectors[delta[:, start]]
    chosen = pivot_columns(vectors.T)
    before, after = vectors[chosen], vectors[delta[0, chosen]] - shifts[0]
    transposed = _integers(fmpq_mat(fmpz_mat(before.tolist())).solve(fmpq_mat(fmpz_mat(after.tolist()))))
    return Affine(*(tuple(map(tuple, part.tolist())) for part in (transposed.T, shifts, vectors)))


def _integers(matrix: fmpq_mat) -> np.ndarray:
    numbers = fractions_of(matrix)
    if any(x.denominator != 1 for x in numbers.flat):
        raise NotExact("a matrix that must be integer in lattice coordinates is not")
    return numbers // 1
