"""Find coordinates of a representation: functions of the state on which each letter acts affinely (T3).

On the functions that vanish on W, f ↦ f ∘ δ_a are commuting, diagonalisable maps. A common eigenvector,
f(δ(q,a)) = χ(a) f(q) + v(a) with χ(a) zero or a root of unity, is one diagonal entry of a layer (`ScalarChannel`).
All numbers are exact: integers, or integer polynomials in ζ = exp(2πi/m) modulo the m-th cyclotomic polynomial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from flint import (  # pyright: ignore[reportMissingTypeStubs]
    fmpq_mat,  # pyright: ignore[reportMissingTypeStubs]
    fmpz_mat,
    fmpz_poly,
)

from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.families.closure import fractions_of, left_kernel, pivot_columns, primitive
from fsa2lrnn.families.identities import EIGENVALUES, Family, cycle_lengths

MAX_ORDER = 5_000  # of a root of unity; polynomials in it have up to as many coefficients


@dataclass(frozen=True)
class ScalarChannel:
    """A coordinate f(δ(q,a)) = χ(a) f(q) + v(a) of a diagonal layer; complex, or an integer if `order` is 1 or 2.

    Args:
        order: m, the order of the root of unity ζ in which the numbers are expressed.
        exponents: for each letter the k with χ(a) = ζ^k, None for χ(a) = 0.
        values: f(q) for each state, as φ(m) integer coefficients of 1, ζ, ζ² …; f(start) = 0.
        shifts: v(a) for each letter, as φ(m) integer coefficients.
    """

    order: int
    exponents: tuple[int | None, ...]
    values: tuple[tuple[int, ...], ...]
    shifts: tuple[tuple[int, ...], ...]

    @property
    def dimension(self) -> int:
        """The number of real dimensions: 1, or 2 for a rotation."""
        return 1 if self.order <= 2 else 2

    @property
    def is_integer(self) -> bool:
        """Whether real and imaginary parts are integers: ζ is 1, −1 or i."""
        return self.order in (1, 2, 4)

    def multiplier(self, a: int) -> complex:
        """Return χ(a) in floating point; exact for 0, ±1 and ±i."""
        k = self.exponents[a]
        if k is None:
            return 0
        # In quarters of a turn, so that the four exact values are recognised without rounding.
        k = k * 4 % (4 * self.order)
        if k % self.order == 0:
            return (1, 1j, -1, -1j)[k // self.order]
        angle = 2 * math.pi * k / (4 * self.order)
        return complex(math.cos(angle), math.sin(angle))

    def number(self, coefficients: tuple[int, ...]) -> complex:
        """Return the number with these coefficients of 1, ζ, ζ² … in floating point; exact if `is_integer`."""
        if self.order <= 2:
            return coefficients[0]
        if self.order == 4:
            return complex(coefficients[0], coefficients[1])
        angles = 2 * math.pi * np.arange(len(coefficients)) / self.order
        parts = np.array([float(c) for c in coefficients])
        return complex(parts @ np.cos(angles), parts @ np.sin(angles))


def separating_channels(
    functions: np.ndarray, delta: np.ndarray, start: int, family: Family
) -> tuple[ScalarChannel, ...]:
    """Return diagonal entries that together separate all states, lowest orders first, without redundant ones.

    `functions`, integers (k, n), span the annihilator of W for a family with a diagonal form, and separate all states.
    Raises `BudgetExceeded` for roots of unity of an order beyond `MAX_ORDER`.
    """
    chosen: list[ScalarChannel] = []
    pieces = sorted(_pieces(basis_zero_at(functions, start), delta, start, family), key=lambda piece: piece.order)
    n = delta.shape[1]
    for channel in (channel for piece in pieces for channel in _channels_of(piece, delta, start)):  # low orders first
        if _classes([*chosen, channel], n) > _classes(chosen, n):
            chosen.append(channel)
        if _classes(chosen, n) == n:
            break
    if _classes(chosen, n) != n:
        raise NotExact("the channels do not tell all states apart, though the functions do: please report this machine")
    for channel in list(chosen):  # later entries may separate all that an earlier one does
        rest = [other for other in chosen if other is not channel]
        if _classes(rest, n) == n:
            chosen = rest
    return tuple(chosen)


def _classes(channels: list[ScalarChannel], n: int) -> int:
    return len(set(zip(*(channel.values for channel in channels), strict=True))) if channels else min(n, 1)


@dataclass(frozen=True)
class _EigenPiece:
    """A space of functions on which the eigenvalues of letter a have the order orders[a], None if it acts as zero."""

    functions: np.ndarray
    orders: tuple[int | None, ...]

    @property
    def order(self) -> int:
        return math.lcm(*(order for order in self.orders if order is not None))


def _pieces(functions: np.ndarray, delta: np.ndarray, start: int, family: Family) -> list[_EigenPiece]:
    pieces = [_EigenPiece(functions, ())]
    for step in delta:
        orders = EIGENVALUES[family.eigenvalues][1] or _possible_orders(step)
        pieces = [part for piece in pieces for part in _split(piece, step, start, orders)]
    return pieces


def _possible_orders(step: np.ndarray) -> list[int]:
    return sorted({m for length in cycle_lengths(step) for m in range(1, length + 1) if length % m == 0})


def _split(piece: _EigenPiece, step: np.ndarray, start: int, orders: list[int]) -> Iterator[_EigenPiece]:
    """Yield the parts of a piece on which a letter has eigenvalues of one order: kernels of cyclotomic polynomials.

    `orders` are those that the family allows, or the divisors of the letter's cycle lengths; None is the eigenvalue 0.
    """
    left = len(piece.functions)
    for order in (None, *orders):
        if not left:
            return
        # The kernel of Φ_m of the letter is the sum of the eigenspaces of the primitive m-th roots; x alone gives the
        # kernel of 0.
        polynomial = [0, 1] if order is None else [int(c) for c in fmpz_poly.cyclotomic(order)]
        image, power = np.zeros_like(piece.functions), piece.functions
        for coefficient in polynomial:
            image = image + coefficient * power
            power = _moved(power, step, start)
        combinations = left_kernel(image)
        if len(combinations):
            left -= len(combinations)
            yield _EigenPiece(primitive(combinations @ piece.functions), (*piece.orders, order))
    if left:
        raise NotExact("a letter is not diagonalisable on the quotient, though the identities force it to be")


def _channels_of(piece: _EigenPiece, delta: np.ndarray, start: int) -> Iterator[ScalarChannel]:
    """Yield scalar channels that together span a piece's functions over the cyclotomic field of its order."""
    m = piece.order
    if m > MAX_ORDER:
        raise BudgetExceeded(
            f"the witness needs a root of unity of order {m:,}, more than {MAX_ORDER:,}: "
            "the family does represent the machine, but its weights are not written out"
        )
    for function in piece.functions:
        ring = np.zeros((len(function), m), dtype=object)  # polynomials in ζ modulo ζ^m − 1
        ring[:, 0] = function
        for exponents, values in _characters(ring, piece.orders, delta, start, m):
            reduced = _reduced(values, m)
            moved = [reduced[step[start]] for step in delta]
            yield ScalarChannel(
                m, exponents, tuple(map(tuple, reduced.tolist())), tuple(tuple(v.tolist()) for v in moved)
            )


def _characters(
    values: np.ndarray, orders: tuple[int | None, ...], delta: np.ndarray, start: int, m: int
) -> Iterator[tuple[tuple[int | None, ...], np.ndarray]]:
    """Yield exponents of ζ per letter, None for 0, and the projection of a function to that common eigenspace.

    `values` (n, m) are polynomials in ζ modulo ζ^m − 1, so multiplying by ζ^k rolls axis 1. The projection to
    eigenvalue λ of a letter of order r is Σ λ^−i f ∘ δ^i, i < r. One letter is treated per level of the recursion.
    """
    if not orders:
        yield (), values
        return
    order, step = orders[0], delta[len(delta) - len(orders)]
    # An eigenvalue 0, 1 or −1 has no other conjugate, so the whole function already lies in its eigenspace.
    if order is None or order <= 2:
        exponent = None if order is None else (0 if order == 1 else m // 2)
        for rest, vectors in _characters(values, orders[1:], delta, start, m):
            yield (exponent, *rest), vectors
        return
    for j in range(1, order):
        if math.gcd(j, order) > 1:
            continue
        # The primitive roots of order r are ζ^(j·m/r) with j prime to r.
        exponent = j * (m // order)
        projected, power = np.zeros_like(values), values
        for i in range(order):
            # Multiplication by λ^−i is a rotation of the coefficients, as they are taken modulo ζ^m − 1.
            projected = projected + np.roll(power, -i * exponent, axis=1)
            power = power[step] - power[step[start]]
        # Zero modulo the cyclotomic polynomial is zero as a number, which zero modulo ζ^m − 1 would not show.
        if _reduced(projected, m).any():
            shrunk = projected // max(1, int(np.gcd.reduce(projected, axis=None)))
            for rest, vectors in _characters(shrunk, orders[1:], delta, start, m):
                yield (exponent, *rest), vectors


def _reduced(values: np.ndarray, m: int) -> np.ndarray:
    """Return polynomials in ζ modulo the m-th cyclotomic polynomial: (n, m) -> (n, φ(m))."""
    monic = [int(c) for c in fmpz_poly.cyclotomic(m)]
    degree, rest = len(monic) - 1, values.copy()
    for i in range(m - 1, degree - 1, -1):
        top = rest[:, i].copy()
        if top.any():
            for k, coefficient in enumerate(monic):
                rest[:, i - degree + k] -= coefficient * top
    return rest[:, :degree]


def _moved(functions: np.ndarray, step: np.ndarray, start: int) -> np.ndarray:
    return functions[:, step] - functions[:, [step[start]]]


def basis_zero_at(functions: np.ndarray, start: int) -> np.ndarray:
    """Return a basis of the span of functions f − f(start), integer rows (d, n): these are zero at the start."""
    shifted = functions - functions[:, [start]]
    reduced, _, rank = fmpz_mat(shifted.tolist()).rref() if shifted.size else (None, 1, 0)
    rows = [[int(reduced[i, q]) for q in range(shifted.shape[1])] for i in range(rank)] if reduced is not None else []
    return primitive(np.array(rows, dtype=object).reshape(rank, shifted.shape[1]))


@dataclass(frozen=True)
class Affine:
    """An input-independent layer x ↦ A x + v(a): A (d, d), shifts (|Σ|, d), vectors (n, d); that of the start is 0.

    The differences x_q − x_start generate a lattice that A maps to itself; in a basis of it, A, v and x are integers.
    """

    A: tuple[tuple[int, ...], ...]
    shifts: tuple[tuple[int, ...], ...]
    vectors: tuple[tuple[int, ...], ...]

    @property
    def dimension(self) -> int:
        return len(self.A)


def integer_affine(functions: np.ndarray, delta: np.ndarray, start: int) -> Affine:
    """Return an input-independent layer in integer coordinates, from functions (k, n) that span W's annihilator."""
    coordinates = basis_zero_at(functions, start)  # (d, n)
    d, n = coordinates.shape
    if d == 0:
        return Affine((), tuple(() for _ in delta), tuple(() for _ in range(n)))
    # The rows x_q − x_start generate a lattice of rank d; the nonzero rows of the Hermite form are a basis of it.
    hermite = fmpz_mat(coordinates.T.tolist()).hnf()
    basis = fmpz_mat([[hermite[i, j] for j in range(d)] for i in range(d)]).lll()
    vectors = _integers(fmpq_mat(fmpz_mat(coordinates.T.tolist())) * fmpq_mat(basis).inv())
    shifts = vectors[delta[:, start]]
    chosen = pivot_columns(vectors.T)
    # A is determined by d independent states under letter 0; the family makes it the same for all letters.
    before, after = vectors[chosen], vectors[delta[0, chosen]] - shifts[0]
    transposed = _integers(fmpq_mat(fmpz_mat(before.tolist())).solve(fmpq_mat(fmpz_mat(after.tolist()))))
    return Affine(*(tuple(map(tuple, part.tolist())) for part in (transposed.T, shifts, vectors)))


def _integers(matrix: fmpq_mat) -> np.ndarray:
    numbers = fractions_of(matrix)
    if any(x.denominator != 1 for x in numbers.flat):
        raise NotExact("a matrix that must be integer in lattice coordinates is not")
    return numbers // 1
