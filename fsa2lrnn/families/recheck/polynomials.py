"""Compute in number fields: polynomials modulo an irreducible one, proofs of irreducibility, signs at real roots."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

from .reading import as_list, require, spend, steps_of

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


def check_irreducible(polynomial: list[int], reason: Any) -> None:
    """Raise `RejectedCertificate` unless a monic polynomial is irreducible for a reason [kind, m].

    The reasons are a degree of at most 3 without integer roots, the m-th cyclotomic polynomial, or a prime value at m.
    """
    kind, m = as_list(reason)
    largest = max(map(abs, polynomial[:-1]))
    k = len(polynomial) - 1
    require(type(m) is int and m >= 0, "a reason has no number")
    if kind == "degree":
        require(m == 0 and k <= 3 and largest <= 10**5, "a polynomial of this degree or size needs another reason")
        spend(2 * largest * k)
        roots = k > 1 and any(not _value(polynomial, r) for r in range(-largest - 1, largest + 2))
        require(not roots, "a polynomial has a root")
    elif kind == "cyclotomic":
        require(1 <= m <= MAX_ORDER, f"{m} is not the order of a root of unity up to {MAX_ORDER}")
        require(polynomial == _cyclotomic(m), f"a polynomial is not the {m}-th cyclotomic one")
    else:
        require(kind == "prime" and m >= largest + 3, "a value at a small number proves nothing")
        is_small = (k - 1) * (m.bit_length() - 1) <= 82  # the value is at least m^(k-1), and `is_prime` goes to 2^82
        require(is_small, f"the value at {str(m)[:80]} is too large to tell whether it is a prime")
        require(is_prime(abs(_value(polynomial, m))), f"the value at {m} is not a prime, or too large to tell")


def _value(polynomial: list[Any], x: Any) -> Any:
    total = 0
    for c in reversed(polynomial):
        total = total * x + c
    return total


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
    primes, degree = prime_factors(m)
    spend(m * 2 ** len(primes))
    series = [1] + [0] * degree
    for chosen in range(2 ** len(primes)):
        used = [p for i, p in enumerate(primes) if chosen >> i & 1]
        d = m // math.prod(used)
        for i in range(d, degree + 1) if len(used) % 2 else range(degree, d - 1, -1):
            series[i] += series[i - d] if len(used) % 2 else -series[i - d]
    return [c * series[-1] for c in series]


def is_prime(number: int) -> bool:
    """Return whether a number below 3.3 · 10²⁴ is prime, by the Miller–Rabin test with 13 bases.

    The test is exact in that range (Sorenson and Webster); the result for larger numbers is False.
    """
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
    if number in bases:
        return True
    if number < 2 or number >= 3_317_044_064_679_887_385_961_981 or not all(number % b for b in bases):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for b in bases:
        x = pow(b, odd, number)
        if x not in (1, number - 1) and all((x := x * x % number) != number - 1 for _ in range(twos - 1)):
            return False
    return True


def sum_of_signs(polynomial: list[int], value: list[Any]) -> int:
    """Return Σ sign(value(r)) over the real roots r of an irreducible polynomial, by the Sturm–Tarski sequence."""
    derivative = [i * Fraction(c) for i, c in enumerate(polynomial)][1:]
    chain = [[Fraction(c) for c in polynomial], _remainder(_polynomial_product(derivative, value), polynomial)]
    while len(chain[-1]) > 1:
        chain.append([-c for c in _remainder(chain[-2], chain[-1])])
    ends = []
    for sign in (-1, 1):
        leading = [c[-1] * sign ** (len(c) - 1) for c in chain if c]
        ends.append(sum(x * y < 0 for x, y in itertools.pairwise(leading)))
    return ends[0] - ends[1]


def _polynomial_product(x: list[Any], y: list[Any]) -> list[Any]:
    spend(steps_of(x) * len(y))
    total = [Fraction(0)] * (len(x) + len(y))
    for i, c in enumerate(x):
        for j, z in enumerate(y):
            total[i + j] += c * z
    return total


def _remainder(dividend: list[Any], divisor: list[Any]) -> list[Any]:
    rest = list(dividend)
    while rest and (not rest[-1] or len(rest) >= len(divisor)):
        if rest[-1]:
            factor = rest[-1] / divisor[-1]
            spend(steps_of([factor]) * len(divisor))
            for j, c in enumerate(divisor):
                rest[len(rest) - len(divisor) + j] -= factor * c
        rest.pop()
    return rest
