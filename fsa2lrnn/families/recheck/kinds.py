"""Check that modules are irreducible, and their endomorphism rings (T31, T32)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from .machine import CheckedMachine
from .modules import PRIME, Letter, applied, check_norton, combination, rank_of, read_element, residue, times
from .polynomials import check_irreducible, is_prime, sum_of_signs
from .reading import as_list, fields, rationals, require


class CheckedKind(NamedTuple):
    """An irreducible module; `path` has the origin of each basis vector except the first, (earlier vector, letter)."""

    letters: list[Letter]
    path: list[tuple[int, int]]
    commutant: int  # the dimension of the ring of maps that commute with the letters
    splits: bool  # whether it splits over the field in a single way, into finitely many conjugate constituents
    weight: int  # the least dimension of a constituent over the field


def check_kind(value: Any, machine: CheckedMachine, field: str) -> CheckedKind:
    """Return a module and its data; raise `RejectedCertificate` unless it is proved to be irreducible."""
    names = ("letters", "path", "element", "covector", "commutant")
    tables, steps, element, covector, commutant = fields(value, *names)
    d, n_letters = len(as_list(steps)) + 1, len(machine.delta)
    require(len(as_list(tables)) == n_letters, "a kind has letters that are not the machine's")
    letters: list[Letter] = []
    for table in tables:
        require(len(as_list(table)) == d, f"a letter of a kind has not {d} rows")
        letters.append([{j: x for j, x in enumerate(rationals(row, d)) if x} for row in table])
    path = [(parent, a) for parent, a in map(as_list, steps)]
    for i, (parent, a) in enumerate(path, 1):
        is_step = type(parent) is type(a) is int and 0 <= parent < i and 0 <= a < n_letters
        require(is_step and letters[a][parent] == {i: 1}, f"row {i} of a kind is not the image it should be")
    kind = CheckedKind(letters, path, 0, True, 0)
    first = [int(j == 0) for j in range(d)]
    dimension, ideal = _check_commutant(commutant, kind, field)
    require(d % dimension == 0, f"{d} dimensions are no space over what commutes")
    check_norton(letters, read_element(element, machine), first, rationals(covector, d), dimension)
    splits = not commutant["pair"] or field == "Q" or (field == "R" and commutant["prime"] is None)
    return kind._replace(commutant=dimension, splits=splits, weight=d // dimension * ideal)


def _check_commutant(value: Any, kind: CheckedKind, field: str) -> tuple[int, int]:
    d = len(kind.path) + 1
    names = ("polynomial", "irreducible", "generator", "pair", "squares", "prime")
    polynomial, reason, generator, pair, squares, prime = fields(value, *names)
    require(all(type(c) is int for c in as_list(polynomial)), "a polynomial has a coefficient that is not an integer")
    k, one = len(polynomial) - 1, [int(j == 0) for j in range(d)]
    require(k >= 1 and polynomial[-1] == 1, "a polynomial is not monic")
    check_irreducible(polynomial, reason)
    # The generator commutes with all letters and satisfies an irreducible polynomial: a field of degree k.
    t = _endomorphism(generator, kind)
    powers = [one]
    for _ in range(k):
        powers.append(times(powers[-1], t))
    require(not any(combination(polynomial, powers)), "what commutes does not satisfy its polynomial")
    # Over R the field has as many real places as the polynomial has real roots.
    query = sum_of_signs(polynomial, [1]) if field == "R" or as_list(pair) else 0
    if not as_list(pair):
        require(not as_list(squares) and prime is None, "there are squares of no quaternions")
        return k, {"Q": k, "R": 1 if query else 2, "C": 1}[field]
    require(query == k, "the center of the quaternions has a root that is not real")
    require(len(as_list(squares)) == len(pair) == 2, "there are not two quaternions and their squares")
    # Quaternions over that field: i and j commute with it and anticommute, their squares lie in it.
    i, j = (_endomorphism(row, kind) for row in pair)
    v_i, v_j = times(one, i), times(one, j)
    for (unit, image), square in zip(((i, v_i), (j, v_j)), squares, strict=True):
        value = rationals(square, k)
        require(times(image, unit) == combination(value, powers), "a square of a quaternion is wrong")
        require(times(image, t) == times(powers[1], unit), "the quaternions don't commute with their center")
        is_negative = prime is not None or sum_of_signs(polynomial, value) == -k
        require(is_negative, "the quaternions are not Hamilton's over every real root")
    require(not any(map(sum, zip(times(v_i, j), times(v_j, i), strict=True))), "i and j don't anticommute")
    if prime is not None:
        require(type(prime) is int and k == 1 and is_prime(prime), "a prime for quaternions over the rationals is none")
        (a,), (b,) = (rationals(square, k) for square in squares)
        require(_hilbert_symbol(Fraction(a), Fraction(b), prime) == -1, "the quaternions may have zero divisors")
    return 4 * k, {"Q": 4 * k, "R": 4 if prime is None else 2, "C": 2}[field]


def _hilbert_symbol(a: Fraction, b: Fraction, p: int) -> int:
    """Return 1 if a x² + b y² = z² has a nonzero p-adic solution, else −1 (Serre, A Course in Arithmetic, III)."""
    parts = []
    for x in (a.numerator * a.denominator, b.numerator * b.denominator):
        require(x != 0, "the square of a quaternion is zero")
        exponent = 0
        while x % p == 0:
            x, exponent = x // p, exponent + 1
        parts.append((exponent, x))
    (i, u), (j, v) = parts
    if p == 2:
        return (-1) ** ((u - 1) // 2 * ((v - 1) // 2) + i * ((v * v - 1) // 8) + j * ((u * u - 1) // 8) & 1)
    legendre = [1 if pow(x, (p - 1) // 2, p) == 1 else -1 for x in (u, v)]
    return (-1) ** (i * j * (p - 1) // 2 & 1) * legendre[0] ** (j & 1) * legendre[1] ** (i & 1)


def _endomorphism(row: Any, kind: CheckedKind) -> Letter:
    d = len(kind.path) + 1
    images = [rationals(row, d)]
    for parent, a in kind.path:
        images.append(times(images[parent], kind.letters[a]))
    rows = [{j: x for j, x in enumerate(image) if x} for image in images]
    for letter in kind.letters:
        for i, relation in enumerate(letter):
            expected = times([relation.get(j, 0) for j in range(d)], rows)
            require(times(images[i], letter) == expected, "a map does not commute with the letters")
    return rows


def rank_on(kind: CheckedKind, element: list[Any], exponent: int) -> int:
    """Return the rank, modulo the prime, of a power of an element of the algebra on a kind."""
    d = len(kind.path) + 1
    letters = [[{j: residue(x) for j, x in row.items()} for row in letter] for letter in kind.letters]
    images = [[int(i == j) for j in range(d)] for i in range(d)]
    for _ in range(exponent):
        images = [[x % PRIME for x in applied(element, row, letters)] for row in images]
    return rank_of(images, d)
