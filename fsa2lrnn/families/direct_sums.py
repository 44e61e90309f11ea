"""Split modules into direct sums that cannot be split further, exactly over the rationals (T68 of docs/theory.md).

The matrices X with X A(a) = A(a) X for all letters form an algebra, the commutant. For coprime factors f of the
characteristic polynomial of such an X, the kernels of f(X)^k are submodules, and add up to the whole module. A module
does not split if its commutant modulo the radical is a field, which one X with one factor, of the degree of that field,
shows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import isqrt

from flint import fmpq, fmpq_mat, fmpq_poly, fmpz, nmod_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.deadline import Deadline, bounded, check_current, limited
from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.families import linear
from fsa2lrnn.families.function_modules import Module, SpunSubmodule, restricted, spin

MAX_STATES = 100
_MAX_UNKNOWNS = 600  # coordinates of the images of generators
_TRIES = 400  # elements of a commutant, for one that splits


def indecomposable(module: Module, begun: list[fmpq_mat], seconds: float | None) -> tuple[list[fmpq_mat], bool]:
    """Split submodules, given by rows; return bases of the parts, and whether it is proved that none splits further."""
    waiting, parts, is_finest = begun[::-1], list[fmpq_mat](), True
    with limited(Deadline.of(seconds)):
        while waiting:
            rows = waiting.pop()
            letters, pieces = restricted(module, rows), None
            try:
                if letters is not None:
                    pieces = _pieces(Module(letters))
            except BudgetExceeded:
                pass
            if pieces is None or len(pieces) == 1:
                is_finest &= pieces is not None
                parts.append(rows)
            else:
                waiting += [piece * rows for piece in reversed(pieces)]
    return parts, is_finest


def _pieces(module: Module) -> list[fmpq_mat] | None:
    """Return bases of two or more summands of a module, or one if it is proved that it has no others, else None."""
    n = module.dimension
    if n == 1:
        return [linear.identity(1)]
    basis = _commutant(module)
    flat = linear.stack([fmpq_mat(1, n * n, X.entries()) for X in basis], n * n)
    across = linear.stack([fmpq_mat(1, n * n, X.transpose().entries()) for X in basis], n * n)
    # The radical is that of the trace form: traces of products vanish on it alone, as all simple modules occur.
    simple = (flat * across.transpose()).rank()
    for X in _elements(flat, n):
        check_current("the summands of a module")
        factors = X.charpoly().factor()[1]
        if len(factors) > 1:
            return [_short(linear.left_kernel(_power(f, X, k))) for f, k in factors]
        if factors[0][0].degree() == simple:
            return [linear.identity(n)]
    return None


def _elements(flat: fmpq_mat, n: int) -> Iterator[fmpq_mat]:
    """Yield elements of a commutant: a generic one, a basis, a short basis, and small combinations of that."""
    d, rng = flat.nrows(), random.Random(0)
    for row in (fmpq_mat(1, d, [rng.randint(-99, 99) for _ in range(d)]) * flat, *linear.each_row(flat)):
        yield fmpq_mat(n, n, row.entries())
    flat = _short(flat)
    for row in linear.each_row(flat):
        yield fmpq_mat(n, n, row.entries())
    for _ in range(_TRIES):
        row = fmpq_mat(1, d, [rng.choice((0, rng.randint(-3, 3))) for _ in range(d)])
        yield fmpq_mat(n, n, (row * flat).entries())


def _commutant(module: Module) -> list[fmpq_mat]:
    """Return a basis of the matrices that commute with all letters.

    It is computed modulo primes, put together, and checked over ℚ: there cannot be more than modulo a prime.
    """
    n, rng = module.dimension, random.Random(0)
    bounded(n, MAX_STATES, f"{n:,} states")
    unit = fmpq_mat(n, n, [rng.randint(-2, 2) if i < j else int(i == j) for i in range(n) for j in range(n)])
    spun = next(s for m in range(1, n + 1) if len((s := spin(module, linear.rows_of(unit, range(m)))).path) == n)
    unknowns = n * sum(parent < 0 for parent, _ in spun.path)
    bounded(unknowns, _MAX_UNKNOWNS, f"{unknowns:,} unknowns")
    residues, modulus, shape = list[int](), 1, (0, 0)
    for count, prime in enumerate(_primes(), 1):
        check_current("the commutant of the letters")
        found = _modular_commutant(module, spun, prime)
        if found is None or (residues and found.nrows() > shape[0]):
            continue
        if (size := (found.nrows(), found.ncols())) != shape:  # more were lost modulo the primes before
            residues, modulus, shape = [0] * (size[0] * size[1]), 1, size
        inverse = pow(modulus, -1, prime)
        pairs = zip(residues, found.entries(), strict=True)
        residues = [r + modulus * ((int(x) - r) * inverse % prime) for r, x in pairs]
        modulus *= prime
        if count & (count - 1) == 0:  # powers of two
            entries = [_rational(r, modulus) for r in residues]
            basis = [fmpq_mat(n, n, entries[i : i + n * n]) for i in range(0, len(entries), n * n)]
            if all(X * L == L * X for X in basis for L in module.letters):
                return basis
    raise NotExact("the commutant of the letters was not found")  # there are primes without end


def _modular_commutant(module: Module, spun: SpunSubmodule, prime: int) -> nmod_mat | None:
    """Return the commutant modulo a prime, a reduced row of n² entries each, or None for a prime that divides too much.

    A matrix that commutes is determined by the images of the generators, and all vectors are their images under words.
    The unknowns are the coordinates of those images; each relation between vectors removes some.
    """
    n, matrices = module.dimension, [L.numer_denom() for L in (*module.letters, spun.rows)]
    if any(int(scale) % prime == 0 for _, scale in matrices):
        return None
    *letters, vectors = (nmod_mat(M, prime) * pow(int(scale), -1, prime) for M, scale in matrices)
    if vectors.rank() < n:
        return None
    inverse, d, images = vectors.inv(), n * sum(parent < 0 for parent, _ in spun.path), list[nmod_mat]()
    for i, (parent, letter) in enumerate(spun.path):
        eye = [int(j == i * n + k) for j in range(d) for k in range(n)] if parent < 0 else []
        images.append(nmod_mat(d, n, eye, prime) if parent < 0 else images[parent] * letters[letter])
    known = set(spun.path)
    for a, L in enumerate(letters):
        coefficients = vectors * L * inverse
        for i in range(n):
            if (i, a) in known or images[0].nrows() == 1:  # multiples of the identity always commute
                continue
            wrong = images[i] * L
            for j in range(n):
                if c := coefficients[i, j]:
                    wrong -= images[j] * c
            kernel, nullity = wrong.transpose().nullspace()
            if nullity < wrong.nrows():
                entries = [kernel[r, t] for t in range(nullity) for r in range(wrong.nrows())]
                keep = nmod_mat(nullity, wrong.nrows(), entries, prime)
                images = [keep * image for image in images]
    d = images[0].nrows()
    found = [inverse * nmod_mat(n, n, [image[t, k] for image in images for k in range(n)], prime) for t in range(d)]
    return nmod_mat(d, n * n, [x for X in found for x in X.entries()], prime).rref()[0]


def _primes() -> Iterator[int]:
    return (p for p in range(2**62 - 1, 2**61, -2) if fmpz(p).is_probable_prime())


def _rational(residue: int, modulus: int) -> fmpq:
    """Return the fraction of a residue with numerator and denominator below the root of half the modulus, 0 if none."""
    bound, r, s, t, u = isqrt(modulus // 2), modulus, residue, 0, 1
    while s > bound:
        q = r // s
        r, s, t, u = s, r - q * s, u, t - q * u
    return fmpq(s, u) if 0 < abs(u) <= bound else fmpq(0)


def _power(f: fmpq_poly, X: fmpq_mat, k: int) -> fmpq_mat:
    """Return f(X)^k."""
    one = linear.identity(X.nrows())
    value = one * f[f.degree()]
    for i in reversed(range(f.degree())):
        value = value * X + one * f[i]
    power = value
    for _ in range(k - 1):
        power = power * value
    return power


def _short(rows: fmpq_mat) -> fmpq_mat:
    """Return a short basis of the integer vectors in the span of independent rows.

    With the Hermite form H of the columns, H⁻ᵀ · rows is a basis of all of these; then LLL shortens it.
    """
    whole, r = linear.primitive(rows).numer_denom()[0], rows.nrows()
    H = linear.rows_of(fmpq_mat(whole.transpose().hnf()), range(r))
    return fmpq_mat((H.transpose().inv() * fmpq_mat(whole)).numer_denom()[0].lll())
