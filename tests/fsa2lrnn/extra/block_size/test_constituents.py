"""Constituents over the rationals, against characters and against dimensions that are known."""

from collections import Counter

import pytest
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size.constituents import constituents, structure
from fsa2lrnn.extra.block_size.kinds import homs
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import functions_module, spin
from fsa2lrnn.testing.strategies import machines

from .conftest import dicyclic, metacyclic, special_linear


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


@given(machines(6, 2).filter(lambda m: m.minimise().n_states > 1))
def test_kinds_are_irreducible_and_pairwise_different(machine):
    kinds = kinds_of(machine)
    for i, kind in enumerate(kinds):
        module, d = kind.standard.module, kind.dimension
        assert len(spin(module, linear.rows_of(linear.identity(d), [0])).path) == d
        assert len(spin(module.dual, kind.covector).path) == d
        assert d - linear.rank(module.element(kind.standard.element)) == kind.commutant.dimension
        for j, other in enumerate(kinds):
            assert homs(kind.standard, other.standard.module).nrows() == (i == j) * kind.commutant.dimension


def test_the_number_of_each_kind_in_a_regular_module_is_its_degree():
    machine = zoo.group("S4")
    module = functions_module(machine.delta)
    kinds = kinds_of(machine)
    counts = Counter(homs(kind.standard, module).nrows() for kind in kinds)
    assert counts == {1: 1, 2: 1, 3: 2}


def test_what_commutes_is_an_algebra():
    kind = next(kind for kind in kinds_of(zoo.group("Q8")) if kind.dimension == 4)
    maps = homs(kind.standard, kind.standard.module)
    algebra = structure(kind.standard, maps)
    assert algebra.dimension == 4
    assert algebra.center.nrows() == 1


def test_an_index_that_no_real_place_shows_is_given_up_not_guessed():
    assert kinds_of(metacyclic(5, 8, 2)) is None
