"""Fields and quaternions, and what splits them."""

from itertools import product

import pytest
from flint import fmpq, fmpq_mat, fmpq_poly

from fsa2lrnn.extra.block_size.commutant import (
    Algebra,
    Commutant,
    ZeroDivisor,
    commutant,
    hilbert_symbol,
    integral,
)
from fsa2lrnn.families import linear


def quaternions(a, b):
    """(a, b) over the rationals on the basis 1, i, j, ij: the matrices of "then basis map"."""
    one = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    i = [[0, 1, 0, 0], [a, 0, 0, 0], [0, 0, 0, -1], [0, 0, -a, 0]]
    j = [[0, 0, 1, 0], [0, 0, 0, 1], [b, 0, 0, 0], [0, b, 0, 0]]
    k = [[0, 0, 0, 1], [0, 0, a, 0], [0, -b, 0, 0], [-a * b, 0, 0, 0]]
    return Algebra(linear.identity(4), tuple(linear.matrix(rows, 4) for rows in (one, i, j, k)))


def first(e):
    return fmpq_mat(1, e, [int(i == 0) for i in range(e)])


def test_the_table_of_quaternions_is_associative():
    algebra = quaternions(2, 3)
    units = [fmpq_mat(1, 4, [int(i == k) for i in range(4)]) for k in range(4)]
    for x, y, z in product(units, repeat=3):
        assert (x * algebra.times(y)) * algebra.times(z) == x * algebra.times(y * algebra.times(z))


@pytest.mark.parametrize(
    ("a", "b", "weights"), [(-1, -1, (2, 4, 4)), (-1, 3, (2, 2, 4)), (2, 3, (2, 2, 4)), (-2, -5, (2, 4, 4))]
)
def test_quaternions_without_zero_divisors(a, b, weights):
    found = commutant(quaternions(a, b), first(4), [])
    assert isinstance(found, Commutant)
    assert (found.degree, found.dimension) == (1, 4)
    assert tuple(found.least_ideal(field) for field in "CRQ") == weights
    assert (found.prime is None) == (weights[1] == 4)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (-1, 1), (4, 7)])
def test_matrices_are_never_taken_for_quaternions_without_zero_divisors(a, b):
    found = commutant(quaternions(a, b), first(4), [])
    assert found is None or isinstance(found, ZeroDivisor)


def test_a_square_of_rational_numbers_has_zero_divisors():
    algebra = Algebra(linear.identity(2), (linear.identity(2), linear.matrix([[0, 1], [4, 0]], 2)))
    found = commutant(algebra, first(2), [])
    assert isinstance(found, ZeroDivisor)
    assert linear.rank(algebra.times(found.row)) == 1


def test_hilbert_symbols_multiply_to_one_over_all_places():
    for a, b in product([-7, -3, -2, -1, 2, 3, 5, 6], repeat=2):
        places = [hilbert_symbol(fmpq(a), fmpq(b), p) for p in (2, 3, 5, 7)]
        at_infinity = -1 if a < 0 and b < 0 else 1
        assert places.count(-1) % 2 == (at_infinity == -1)


@pytest.mark.parametrize(("p", "n"), [(2, 16), (3, 9), (5, 25)])
def test_hilbert_symbols_agree_with_solutions_modulo_a_power(p, n):
    squares = {(x * x % n, bool(x % p)) for x in range(n)}
    for a, b in product([-3, -1, 2, 5], repeat=2):
        has = any(
            (a * x + b * y - z) % n == 0 and (u or v or w) for (x, u), (y, v), (z, w) in product(squares, repeat=3)
        )
        assert has == (hilbert_symbol(fmpq(a), fmpq(b), p) == 1)


def test_integral_multiples_have_integer_polynomials():
    assert integral(fmpq_poly([fmpq(1, 8), 0, fmpq(1, 2), 1])) == ((1, 0, 1, 1), 2)
