"""Compute in number fields: polynomials modulo an irreducible one, proofs of irreducibility, real roots."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

from .certificate_fields import as_list, require, spend, steps_of

MAX_ORDER = 5_000  # of a root of unity: the limit of the search for certificates


def modulo(total: list[Any], products: list[tuple[list[Any], list[Any]]], h: list[int]) -> list[Any]:
    """Return the sum of a polynomial and products of pairs, modulo the monic h; coefficients begin with the constant.

    The list `total` is changed.
    """
    k = len(h) - 1
    spend(sum(len(x) * len(y) for x, y in products) + len(h) * (len(total) - k + 1))
    for x, y in products:
        for i, c in enumerate(x):
            if c:
                for j, z in enumerate(y):
                    total[i + j] += c * z
    for i in range(len(total) - 1, k - 1, -1):
        if total[i]:
            top = total[i]
            for j, c in enumerate(h):
                total[i - k + j] -= top * c
    return total[:k]


def check_irreducible(polynomial: list[int], reason: object) -> None:
    """Raise `RejectedCertificate` unless a monic polynomial is irreducible for a reason [kind, m].

    The reasons are a degree of at most 3 without integer roots, the m-th cyclotomic polynomial, and Eisenstein's
    criterion for the prime m after a substitution of x + s for x.
    """
    kind, m = as_list(reason)
    largest = max(map(abs, polynomial[:-1]))
    k = len(polynomial) - 1
    require(type(m) is int and m >= 0, "a reason has no number")
    if kind == "degree":
        require(m == 0 and k <= 3 and largest <= 10**5, "a polynomial of this degree or size needs another reason")
        spend(2 * largest * k)
        # A root of a monic polynomial is at most 1 + its largest coefficient in size, and a rational one is an integer
        # (T33).
        roots = k > 1 and any(modulo([*polynomial], [], [-r, 1]) == [0] for r in range(-largest - 1, largest + 2))
        require(not roots, "a polynomial has a root")
    elif kind == "eisenstein":
        require(2 <= m <= MAX_ORDER and prime_factors(m)[0] == [m], f"{m} is not a prime up to {MAX_ORDER}")
        spend(m * k * k)
        moved = (_at_sum(polynomial, s) for s in range(m))
        is_met = any(not any(c % m for c in h[:-1]) and h[0] % m**2 for h in moved)
        require(is_met, f"a polynomial does not meet Eisenstein's criterion for {m}")
    else:
        require(
            kind == "cyclotomic",
            f"{str(kind)[:80]!r} does not show that a polynomial is irreducible",
        )
        require(1 <= m <= MAX_ORDER, f"{m} is not the order of a root of unity up to {MAX_ORDER}")
        require(polynomial == _cyclotomic(m), f"a polynomial is not the {m}-th cyclotomic one")


def _at_sum(polynomial: list[int], s: int) -> list[int]:
    """Return the coefficients of the polynomial at x + s, by Horner's rule."""
    moved = list(polynomial)
    for i in range(len(moved) - 1):
        for j in range(len(moved) - 2, i - 1, -1):
            moved[j] += s * moved[j + 1]
    return moved


def prime_factors(m: int) -> tuple[list[int], int]:
    """Return the primes that divide m, and φ(m), the degree of the m-th cyclotomic polynomial."""
    primes, rest, p = list[int](), m, 2
    while rest > 1:
        if rest % p == 0:
            primes.append(p)
        while rest % p == 0:
            rest //= p
        p = p + 1 if p * p <= rest else rest
    return primes, m * math.prod(p - 1 for p in primes) // math.prod(primes)


def _cyclotomic(m: int) -> list[int]:
    """Return the coefficients of Φ_m, lowest first: the product over d | m of (1 − x^d)^μ(m/d) mod x^(degree+1)."""
    primes, degree = prime_factors(m)
    spend(m * 2 ** len(primes))
    series = [1] + [0] * degree
    for chosen in range(2 ** len(primes)):
        used = [p for i, p in enumerate(primes) if chosen >> i & 1]
        d = m // math.prod(used)
        for i in range(d, degree + 1) if len(used) % 2 else range(degree, d - 1, -1):
            series[i] += series[i - d] if len(used) % 2 else -series[i - d]
    return [c * series[-1] for c in series]


def real_roots(polynomial: list[int]) -> int:
    """Return the number of real roots of an irreducible polynomial, by Sturm's theorem."""
    chain = [[Fraction(c) for c in polynomial], [i * Fraction(c) for i, c in enumerate(polynomial)][1:]]
    while len(chain[-1]) > 1:
        chain.append([-c for c in _remainder(chain[-2], chain[-1])])
    ends = []
    for sign in (-1, 1):
        # The signs at ±∞ are those of the leading terms; the number of sign changes falls by one per real root.
        leading = [c[-1] * sign ** (len(c) - 1) for c in chain if c]
        ends.append(sum(x * y < 0 for x, y in itertools.pairwise(leading)))
    return ends[0] - ends[1]


def _remainder(dividend: list[Any], divisor: list[Any]) -> list[Any]:
    """Return the remainder of a polynomial division over the rationals, lowest coefficients first."""
    rest = list(dividend)
    while rest and (not rest[-1] or len(rest) >= len(divisor)):
        if rest[-1]:
            factor = rest[-1] / divisor[-1]
            spend(steps_of([factor]) * len(divisor))
            for j, c in enumerate(divisor):
                rest[len(rest) - len(divisor) + j] -= factor * c
        rest.pop()
    return rest
