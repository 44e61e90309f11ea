"""Maps that split a kind over the real or complex numbers, and complex conjugation in a number field."""

import pytest
from flint import fmpq, fmpq_poly, fmpz_poly

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size.constituents import constituents
from fsa2lrnn.extra.block_size.fields import complex_conjugation, splitting_map, value_at
from fsa2lrnn.extra.block_size.polynomials import real_roots, why_irreducible
from fsa2lrnn.families.modules import functions_module

from .conftest import dicyclic


@pytest.mark.parametrize("machine", [zoo.sum_mod(5), zoo.sum_mod(12), zoo.group("A5"), zoo.group("Q8"), dicyclic(3)])
@pytest.mark.parametrize("field", ["R", "C"])
def test_splitting_maps_commute_and_have_as_many_eigenspaces_as_the_kind_splits_into(machine, field):
    for kind in constituents(functions_module(machine.delta), lambda: None):
        found = splitting_map(kind, field)
        if kind.weight(field) == kind.dimension:
            assert found is None
            continue
        polynomial, t = found
        assert all(t * a == a * t for a in kind.standard.module.letters)
        assert value_at(tuple(map(fmpq, polynomial)), t).rank() == 0
        assert why_irreducible(polynomial) is not None
        assert len(polynomial) - 1 == kind.dimension // kind.weight(field)
        assert field == "C" or real_roots(polynomial) > 0


def test_nothing_splits_over_the_rationals():
    (kind,) = constituents(functions_module(zoo.sum_mod(7).delta), lambda: None)
    assert splitting_map(kind, "Q") is None


@pytest.mark.parametrize("m", [3, 4, 5, 7, 8, 9, 12, 15])
def test_conjugation_in_cyclotomic_fields_inverts_the_root(m):
    polynomial = tuple(int(c) for c in fmpz_poly.cyclotomic(m).coeffs())
    conjugate, modulus = fmpq_poly(list(complex_conjugation(polynomial))), fmpq_poly(list(polynomial))
    assert conjugate * fmpq_poly([0, 1]) % modulus == 1


@pytest.mark.parametrize("polynomial", [(-2, 0, 0, 1), (1, 1, 0, 1), (-1, -1, 0, 0, 0, 1)])
def test_fields_without_a_conjugation(polynomial):
    assert complex_conjugation(polynomial) is None


def test_real_fields_are_their_own_conjugates():
    assert complex_conjugation((-5, 0, 1)) == (0, 1)
