"""Find number fields over which a kind splits into its constituents over the real or the complex numbers."""

from __future__ import annotations

from collections.abc import Iterator

from flint import acb_mat, arb, ctx, fmpq, fmpq_mat, fmpq_poly, fmpz_poly  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.extra.block_size.commutant import integral
from fsa2lrnn.extra.block_size.kinds import ModuleKind, endomorphism
from fsa2lrnn.extra.block_size.polynomials import Polynomial, complex_roots, real_roots, value_at, why_irreducible

_BITS = 4_000  # precision of the roots by which complex conjugation is found
_TRIED = 30  # the number of candidates for a generator


def splitting_map(kind: ModuleKind, field: str) -> tuple[Polynomial, fmpq_mat] | None:
    """Return the minimal polynomial and the matrix of a map whose eigenspaces are constituents of a kind, or None.

    The map commutes with the letters; `field` is "Q", "R" or "C". Over "R" a polynomial without real roots means that a
    real constituent consists of the real and imaginary parts of a complex eigenspace. The result is None if the kind
    does not split, or if no polynomial with a short proof of irreducibility was found.
    """
    commutant = kind.commutant
    if field == "Q" or kind.weight(field) == kind.dimension:
        return None
    t = endomorphism(kind.standard, commutant.generator)
    if commutant.pair is not None and commutant.prime is not None and field == "R":
        i, j = (endomorphism(kind.standard, row) for row in commutant.pair)
        found = (_first(iter([unit]), 2) for unit in (i, j, i * j))
        return next((one for one in found if one is not None and real_roots(one[0])), None)
    if commutant.pair is not None and field == "C":
        i = endomorphism(kind.standard, commutant.pair[0])
        candidates = (i + t * step for step in range(_TRIED))
        return _first(candidates, 2 * commutant.degree)
    if field == "C" or real_roots(commutant.polynomial):
        return _first(iter([t]), commutant.degree)
    conjugate = complex_conjugation(commutant.polynomial)
    if conjugate is None:
        return _first(iter([t]), commutant.degree)
    other = value_at(conjugate, t)
    candidates = (t * other * step + (t + other) + (t + other) ** 2 * (step // 5) for step in range(_TRIED))
    found = _first(candidates, commutant.degree // 2)
    return found if found is not None and real_roots(found[0]) else _first(iter([t]), commutant.degree)


def _first(candidates: Iterator[fmpq_mat], degree: int) -> tuple[Polynomial, fmpq_mat] | None:
    for candidate in candidates:
        minimal = candidate.minpoly()
        if minimal.degree() == degree:
            polynomial, scale = integral(minimal)
            if why_irreducible(polynomial) is not None:
                return polynomial, candidate * scale
    return None


def complex_conjugation(polynomial: Polynomial) -> tuple[fmpq, ...] | None:
    """Return the rational polynomial c with c(r) the complex conjugate of r for each root r, or None.

    The result is None if no such polynomial exists or the precision does not suffice. Coefficients are computed in
    floating point, rounded (times the discriminant they are integers), and checked exactly.

    >>> complex_conjugation((1, 1, 1)), complex_conjugation((2, 0, 0, 1))
    ((-1, -1), None)
    """
    h, k = fmpz_poly(list(polynomial)), len(polynomial) - 1
    with ctx.workprec(_BITS):
        roots = complex_roots(polynomial)
        powers = acb_mat([[root**i for i in range(k)] for root in roots])
        found = powers.solve(acb_mat([[root.conjugate()] for root in roots]))
        scale = h.discriminant()
        nearest = [_nearest(found[i, 0].real * arb(scale)) for i in range(k)]
    rounded = [x for x in nearest if x is not None]
    if len(rounded) < k:
        return None
    conjugate = tuple(fmpq(x) / fmpq(scale) for x in rounded)
    modulus, c = fmpq_poly(list(polynomial)), fmpq_poly(list(conjugate))
    is_root = modulus(c) % modulus == 0
    return conjugate if is_root and c(c) % modulus == fmpq_poly([0, 1]) % modulus else None


def _nearest(value: arb) -> int | None:
    """Return the integer nearest to all numbers of a ball, or None if the ball is too wide."""
    middle = (value + arb("0.5")).floor().unique_fmpz()
    return None if middle is None else int(middle)
