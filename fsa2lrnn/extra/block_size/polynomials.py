"""Monic integer polynomials that define number fields: irreducibility proofs, number of real roots, signs at them.

A polynomial is the tuple of its coefficients, constant first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from flint import acb, fmpq, fmpq_mat, fmpq_poly, fmpz, fmpz_poly  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.families import linear

Polynomial = tuple[int, ...]

LARGEST_PRIME = 3_317_044_064_679_887_385_961_981  # the primality test of `recheck` is exact below it
_ARGUMENTS = 400  # the number of arguments at which a prime value is searched


class IrreducibilityProof(NamedTuple):
    """A reason why a monic polynomial is irreducible over the rationals (T33 (c)).

    Args:
        reason: "degree" (at most 3, no integer root), "cyclotomic" (the m-th), or "prime" (±its value at m is prime,
            and m exceeds 1 + |r| for every root r, so that each factor exceeds 1 in size at m).
        m: the number in `reason`; 0 for "degree".
    """

    reason: str
    m: int


def why_irreducible(polynomial: Polynomial) -> IrreducibilityProof | None:
    """Return a short proof for `recheck`, or None if the polynomial is reducible or has no proof of these kinds.

    >>> why_irreducible((-5, 0, 1)), why_irreducible((1, 1, 1, 1, 1)), why_irreducible((-1, 0, 1))
    (IrreducibilityProof(reason='degree', m=0), IrreducibilityProof(reason='cyclotomic', m=5), None)
    """
    poly = fmpz_poly(list(polynomial))
    if sum(exponent for _, exponent in poly.factor()[1]) != 1:
        return None
    if poly.degree() <= 3:
        return IrreducibilityProof("degree", 0)
    if order := poly.is_cyclotomic():
        return IrreducibilityProof("cyclotomic", int(order))
    first = 3 + max(abs(c) for c in polynomial[:-1])  # Cauchy's bound: |root| ≤ 1 + max |c|
    for m in range(first, first + _ARGUMENTS):
        value = abs(poly(fmpz(m)))
        if value > LARGEST_PRIME:
            return None
        if value.is_prime():
            return IrreducibilityProof("prime", m)
    return None


def complex_roots(polynomial: Polynomial) -> list[acb]:
    """Return all roots as balls of the current precision; the imaginary part of a real root is exactly 0."""
    pairs: Any = fmpz_poly(list(polynomial)).complex_roots()  # with multiplicities, which the stubs lack
    return [root for root, _ in pairs]


def value_at(coefficients: Sequence[fmpq], matrix: fmpq_mat) -> fmpq_mat:
    """Return the value of a polynomial at a square matrix, by Horner's rule.

    >>> value_at([fmpq(1), fmpq(2)], fmpq_mat(1, 1, [3])).entries()
    [7]
    """
    total = fmpq_mat(matrix.nrows(), matrix.nrows())
    for coefficient in reversed(coefficients):
        total = total * matrix + linear.identity(matrix.nrows()) * coefficient
    return total


def real_roots(polynomial: Polynomial) -> int:
    """Return the number of real roots of a polynomial without multiple roots, by Sturm's theorem.

    >>> real_roots((-5, 0, 1)), real_roots((1, 1, 1, 1, 1))
    (2, 0)
    """
    return _query(fmpq_poly(list(polynomial)), fmpq_poly([1]))


def negative_at_real_roots(value: tuple[fmpq, ...], polynomial: Polynomial) -> int:
    """Return the number of real roots of an irreducible polynomial at which the field element `value` is negative.

    >>> negative_at_real_roots((fmpq(0), fmpq(1)), (-5, 0, 1))
    1
    """
    signs = _query(fmpq_poly(list(polynomial)), fmpq_poly(list(value)))
    return (real_roots(polynomial) - signs) // 2


def _query(modulus: fmpq_poly, value: fmpq_poly) -> int:
    """Return Σ sign(value) over the real roots of `modulus`, by a Sturm chain (Tarski); they have no root in common."""
    chain = [modulus, modulus.derivative() * value % modulus]
    while chain[-1].degree() > 0:
        chain.append(-(chain[-2] % chain[-1]))
    ends = []
    for sign in (-1, 1):
        leading = [p.leading_coefficient() * sign ** p.degree() for p in chain if p != 0]
        ends.append(sum(a * b < 0 for a, b in pairwise(leading)))
    return ends[0] - ends[1]
