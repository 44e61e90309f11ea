"""The commutant C of an irreducible module, the algebra of maps that commute with the letters: a field or quaternions.

C decides how the module splits over the reals and the complex numbers (T32). Let v be the vector that generates the
module. A map c is determined by the row v·c; its coordinates are the e coefficients of this row in a basis of v·C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from flint import fmpq, fmpq_mat, fmpq_poly, fmpz_poly  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.extra.block_size.polynomials import (
    Polynomial,
    negative_at_real_roots,
    real_roots,
    value_at,
    why_irreducible,
)
from fsa2lrnn.families import linear

_TRIED = 150  # the number of generators of a field from which the one with the smallest polynomial is chosen


@dataclass(frozen=True)
class Commutant:
    """A commutant C: a field E = Q[t]/(h), or quaternions E⟨i, j⟩ with i² = α, j² = β, ij = −ji, without zero divisors.

    Args:
        polynomial: h, monic with integer coefficients.
        generator: the row v·t.
        pair: the rows v·i and v·j; None for a field.
        squares: α and β, polynomials in t; None for a field.
        prime: a prime p for which α x² + β y² = z² has only the zero solution p-adically, which proves that E = Q has
            no zero divisors here; None for a field, and if h has only real roots and α, β are negative at all of them.
    """

    polynomial: Polynomial
    generator: fmpq_mat
    pair: tuple[fmpq_mat, fmpq_mat] | None = None
    squares: tuple[tuple[fmpq, ...], tuple[fmpq, ...]] | None = None
    prime: int | None = None

    @property
    def degree(self) -> int:
        """The dimension of E over the rationals."""
        return len(self.polynomial) - 1

    @property
    def dimension(self) -> int:
        """The dimension of the commutant C over the rationals."""
        return self.degree * (1 if self.pair is None else 4)

    def splits_in_one_way(self, field: str) -> bool:
        """Return whether the module has finitely many simple submodules over a field, all conjugate (T31 (b))."""
        return self.pair is None or field == "Q" or (field == "R" and self.prime is None)

    def least_ideal(self, field: str) -> int:
        """Return the dimension over K = "Q", "R" or "C" of a least nonzero one-sided ideal of C ⊗ K: μ of T32."""
        if field == "C":
            return 1 if self.pair is None else 2
        if field == "Q":
            return self.dimension
        if self.pair is not None:
            return 4 if self.prime is None else 2
        return 1 if real_roots(self.polynomial) else 2


@dataclass(frozen=True)
class ZeroDivisor:
    """A row v·c with c neither zero nor invertible, which proves the module reducible."""

    row: fmpq_mat


@dataclass(frozen=True)
class Algebra:
    """The algebra C with the basis c_1 … c_e, as rows v·c_j (e, d), and its structure constants.

    `products[j]` (e, e) maps the coordinates of c to those of c followed by c_j.
    """

    basis: fmpq_mat
    products: tuple[fmpq_mat, ...]

    @property
    def dimension(self) -> int:
        """The dimension e of the algebra over the rationals."""
        return self.basis.nrows()

    def times(self, coordinates: fmpq_mat) -> fmpq_mat:
        """Return the matrix (e, e) that maps the coordinates of a map to those of its composition with c, (1, e)."""
        total = fmpq_mat(self.dimension, self.dimension)
        for j, product in enumerate(self.products):
            total = total + product * coordinates[0, j]
        return total

    @property
    def center(self) -> fmpq_mat:
        """A basis of the maps that commute with all maps of the algebra, as rows of coordinates."""
        e = self.dimension
        sides = [
            [
                entry
                for i in range(e)
                for entry in (linear.rows_of(self.products[i], [j]) - linear.rows_of(self.products[j], [i])).entries()
            ]
            for j in range(e)
        ]
        return linear.left_kernel(linear.matrix(sides, e * e))


def commutant(algebra: Algebra, one: fmpq_mat, hints: list[fmpq_mat]) -> Commutant | ZeroDivisor | None:
    """Return an algebra C as a field or as quaternions, or a zero divisor of C, or None if neither is found.

    Args:
        algebra: C.
        one: the coordinates of the identity, shape (1, e).
        hints: coordinates of maps to try first as generators of the center of C.
    """
    center = algebra.center
    field = _field(algebra, one, center, hints)
    if isinstance(field, ZeroDivisor) or field is None:
        return field
    polynomial, generator = field
    found = Commutant(polynomial, generator * algebra.basis)
    if center.nrows() == algebra.dimension:
        return found
    return _quaternions(algebra, one, center, found, generator) if algebra.dimension == 4 * found.degree else None


def _field(
    algebra: Algebra, one: fmpq_mat, center: fmpq_mat, hints: list[fmpq_mat]
) -> tuple[Polynomial, fmpq_mat] | ZeroDivisor | None:
    degree = center.nrows()
    best: tuple[tuple[bool, int], Polynomial, fmpq_mat] | None = None
    within = linear.row_space(center)
    for tried, candidate in enumerate(_candidates(center, hints)):
        if tried >= _TRIED and (best is not None or tried >= 20 * _TRIED):
            break
        if linear.rank(linear.stack([within, candidate], algebra.dimension)) > degree:
            continue  # a hint that is not central
        minimal = algebra.times(candidate).minpoly()
        if (part := _reducible(minimal)) is not None:
            return ZeroDivisor(one * value_at(part.coeffs(), algebra.times(candidate)) * algebra.basis)
        if minimal.degree() < degree:
            continue
        polynomial, scale = integral(minimal)
        polynomial, generator = _centred(polynomial, candidate * scale, one)
        score = (why_irreducible(polynomial) is None, max(map(abs, polynomial[:-1])))
        if best is None or score < best[0]:
            best = score, polynomial, generator
            if score <= (False, 1):
                break
    return None if best is None else best[1:]


def _candidates(center: fmpq_mat, hints: list[fmpq_mat]) -> Iterator[fmpq_mat]:
    rows = linear.each_row(center)
    yield from hints
    yield from rows
    for x, y in combinations(rows, 2):
        yield x + y
        yield x - y
    for step in range(1, 400):  # combinations with growing coefficients, in no pattern
        total = fmpq_mat(1, center.ncols())
        for i, row in enumerate(rows):
            total = total + row * (((i + 1) * step * step + 3 * i * step) % (3 + step // 10) - 1)
        yield total


def _reducible(minimal: fmpq_poly) -> fmpq_poly | None:
    factors = minimal.factor()[1]
    return factors[0][0] if sum(exponent for _, exponent in factors) > 1 else None


def integral(minimal: fmpq_poly) -> tuple[Polynomial, int]:
    """Return the monic polynomial of s·r with integer coefficients, r a root of `minimal`, and the least such s > 0.

    >>> integral(fmpq_poly([fmpq(1, 4), 0, 1]))
    ((1, 0, 1), 2)
    """
    degree = minimal.degree()
    coefficients = [minimal[i] / minimal.leading_coefficient() for i in range(degree + 1)]
    scale = 1
    for i, coefficient in enumerate(coefficients[:-1]):
        # scale^(degree − i) must be a multiple of the denominator
        for prime, exponent in coefficient.q.factor():
            needed = -(-exponent // (degree - i))
            while scale % prime**needed:
                scale *= int(prime)
    return tuple(int(c * fmpq(scale) ** (degree - i)) for i, c in enumerate(coefficients)), scale


def _centred(polynomial: Polynomial, candidate: fmpq_mat, one: fmpq_mat) -> tuple[Polynomial, fmpq_mat]:
    degree = len(polynomial) - 1
    poly = fmpz_poly(list(polynomial))
    if degree > 1 and poly.is_cyclotomic():
        return polynomial, candidate
    shift = round(-polynomial[-2] / degree)
    moved = poly(fmpz_poly([shift, 1]))
    return tuple(int(c) for c in moved.coeffs()) + (0,) * (degree + 1 - len(moved.coeffs())), candidate - one * shift


def _quaternions(
    algebra: Algebra, one: fmpq_mat, center: fmpq_mat, found: Commutant, generator: fmpq_mat
) -> Commutant | ZeroDivisor | None:
    powers = [one]
    for _ in range(found.degree - 1):
        powers.append(powers[-1] * algebra.times(generator))
    basis = linear.stack(powers, algebra.dimension)
    # A pure quaternion i from a basis vector outside the center; then j = i y − y i anticommutes with it.
    for k in range(algebra.dimension):
        x = fmpq_mat(1, algebra.dimension, [int(j == k) for j in range(algebra.dimension)])
        if linear.rank(linear.stack([center, x], algebra.dimension)) == found.degree:
            continue
        first = _pure(algebra, x, basis)
        if first is None:
            return None
        for m in range(algebra.dimension):
            y = fmpq_mat(1, algebra.dimension, [int(j == m) for j in range(algebra.dimension)])
            second = first * algebra.times(y) - y * algebra.times(first)
            if linear.rank(second) == 0:
                continue
            squares = []
            for pure in (first, second):
                square = pure * algebra.times(pure)
                if linear.rank(square) == 0:
                    return ZeroDivisor(pure * algebra.basis)
                squares.append(tuple(_coordinates(square, basis)))
            # A division algebra if both squares are negative at all real places, or by a prime at which it is ramified.
            pair = first * algebra.basis, second * algebra.basis
            prime = None
            if not _is_definite(found.polynomial, squares):
                prime = _ramified(squares[0][0], squares[1][0]) if found.degree == 1 else None
                if prime is None:
                    return None
            return Commutant(found.polynomial, found.generator, pair, (squares[0], squares[1]), prime)
    return None


def _is_definite(polynomial: Polynomial, squares: Sequence[tuple[fmpq, ...]]) -> bool:
    degree = len(polynomial) - 1
    return real_roots(polynomial) == degree and all(
        negative_at_real_roots(square, polynomial) == degree for square in squares
    )


def _ramified(a: fmpq, b: fmpq) -> int | None:
    candidates = {2} | {int(p) for number in (a, b) for part in (number.p, number.q) for p, _ in abs(part).factor()}
    return next((p for p in sorted(candidates) if hilbert_symbol(a, b, p) == -1), None)


def hilbert_symbol(a: fmpq, b: fmpq, p: int) -> int:
    """Return 1 if a x² + b y² = z² has a nonzero p-adic solution, else −1 (Serre, A Course in Arithmetic, III).

    >>> [hilbert_symbol(fmpq(-1), fmpq(-1), p) for p in (2, 3)], hilbert_symbol(fmpq(-1), fmpq(3), 3)
    ([-1, 1], -1)
    """
    (i, u), (j, v) = (_valuation(int(x.p) * int(x.q), p) for x in (a, b))
    if p > 2:
        sign = -1 if i * j * (p - 1) // 2 % 2 else 1
        return sign * _legendre(u, p) ** j * _legendre(v, p) ** i
    exponent = (u - 1) // 2 * ((v - 1) // 2) + i * ((v * v - 1) // 8) + j * ((u * u - 1) // 8)
    return -1 if exponent % 2 else 1


def _valuation(x: int, p: int) -> tuple[int, int]:
    exponent = 0
    while x % p == 0:
        x, exponent = x // p, exponent + 1
    return exponent, x


def _legendre(x: int, p: int) -> int:
    return 1 if pow(x, (p - 1) // 2, p) == 1 else -1


def _pure(algebra: Algebra, x: fmpq_mat, basis: fmpq_mat) -> fmpq_mat | None:
    k = basis.nrows()
    times = algebra.times(x)
    system = linear.stack([basis * times, basis, x * times], algebra.dimension)
    relation = linear.left_kernel(system)
    for i in range(relation.nrows()):
        last = relation[i, 2 * k]
        if last != 0:
            trace = fmpq_mat(1, k, [-relation[i, j] / last for j in range(k)]) * basis
            return x - trace * fmpq(1, 2)
    return None


def _coordinates(row: fmpq_mat, basis: fmpq_mat) -> list[fmpq]:
    k = basis.nrows()
    relation = linear.left_kernel(linear.stack([basis, row], basis.ncols()))
    return [-relation[0, j] / relation[0, k] for j in range(k)]
