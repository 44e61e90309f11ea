"""Polynomials, fields, constituents and commutants."""

import pytest
from flint import fmpq_mat

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size.commutant import Algebra, Commutant, ZeroDivisor, commutant
from fsa2lrnn.extra.block_size.constituents import constituents
from fsa2lrnn.extra.block_size.householder import factor_bounds
from fsa2lrnn.families import linear, recheck
from fsa2lrnn.families.modules import functions_module

from .conftest import KNOWN, dicyclic, metacyclic, special_linear


def kinds_of(machine):
    return constituents(functions_module(machine.minimise().delta), lambda: None)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (zoo.group("S4"), [(1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 3, 1), (3, 3, 3, 1)]),
        (zoo.group("A5"), [(3, 3, 6, 2), (4, 4, 4, 1), (5, 5, 5, 1)]),
        (zoo.group("Q8"), [(1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), (2, 4, 4, 4)]),
        (zoo.sum_mod(12), [(1, 1, 1, 1), (1, 2, 2, 2), (1, 2, 2, 2), (1, 2, 2, 2), (1, 2, 4, 4)]),
        (special_linear(3), [(1, 2, 2, 2), (2, 4, 4, 4), (2, 4, 4, 2), (3, 3, 3, 1)]),
        (dicyclic(4), [(1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), (2, 2, 2, 1), (2, 4, 8, 8)]),
        (metacyclic(7, 3, 2), [(1, 2, 2, 2), (3, 6, 6, 2)]),
        (zoo.cerny(6), [(5, 5, 5, 1)]),
        (zoo.shift_register(3), [(1, 1, 1, 1)]),
    ],
)
def test_weights_over_the_three_fields_and_what_commutes(machine, expected):
    found = [(*(kind.weight(field) for field in "CRQ"), kind.commutant.dimension) for kind in kinds_of(machine)]
    assert sorted(found) == sorted(expected)


def quaternions(a, b):
    """(a, b) over the rationals on the basis 1, i, j, ij: the matrices of "then basis map"."""
    one = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    i = [[0, 1, 0, 0], [a, 0, 0, 0], [0, 0, 0, -1], [0, 0, -a, 0]]
    j = [[0, 0, 1, 0], [0, 0, 0, 1], [b, 0, 0, 0], [0, b, 0, 0]]
    k = [[0, 0, 0, 1], [0, 0, a, 0], [0, -b, 0, 0], [-a * b, 0, 0, 0]]
    return Algebra(linear.identity(4), tuple(linear.matrix(rows, 4) for rows in (one, i, j, k)))


def first(e):
    return fmpq_mat(1, e, [int(i == 0) for i in range(e)])


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


@pytest.mark.parametrize("source", KNOWN)
def test_named_machines(source):
    lower, upper = KNOWN[source][3]
    found = factor_bounds(zoo.from_task(source))
    assert (found.lower, found.upper) == (lower, upper)
    if found.impossible is not None:
        assert recheck(found.impossible).startswith("impossible: no layer of products of ")
    if found.heads:
        assert recheck(found.to_json()).startswith("representable: ")
