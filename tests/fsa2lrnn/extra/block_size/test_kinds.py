"""Homomorphisms from a kind, against solving for all matrices at once."""

from flint import fmpq_mat
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size.constituents import constituents
from fsa2lrnn.extra.block_size.kinds import endomorphism, homs, image, is_hom
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import functions_module
from fsa2lrnn.testing.strategies import machines


def all_homs(kind, module):
    """The dimension of {X: F(a) X = X M(a)}, d·m unknowns."""
    d, m = kind.dimension, module.dimension
    columns = []
    for a, b in zip(kind.module.letters, module.letters, strict=True):
        for i in range(d):
            for j in range(m):
                row = [0] * (d * m)
                for k in range(d):
                    row[k * m + j] += a[i, k]
                for k in range(m):
                    row[i * m + k] -= b[k, j]
                columns.append(row)
    return d * m - linear.rank(linear.matrix(columns, d * m))


@given(machines(5, 2).filter(lambda m: m.minimise().n_states > 1))
def test_all_homomorphisms_are_found_and_are_such(machine):
    module = functions_module(machine.minimise().delta)
    for kind in constituents(module, lambda: None):
        found = homs(kind.standard, module)
        assert found.nrows() == all_homs(kind.standard, module)
        for i in range(found.nrows()):
            rows = image(kind.standard, module, linear.rows_of(found, [i]))
            for a, b in zip(kind.standard.module.letters, module.letters, strict=True):
                assert a * rows == rows * b


def test_what_is_no_homomorphism_and_maps_of_a_kind_to_itself():
    module = functions_module(zoo.group("S3").delta)
    kind = next(k for k in constituents(module, lambda: None) if k.dimension == 2)
    assert not is_hom(kind.standard, module, fmpq_mat(1, 5, [1, 0, 0, 0, 0]))
    five = functions_module(zoo.sum_mod(5).delta)
    field = constituents(five, lambda: None)[0]
    turn = endomorphism(field.standard, field.commutant.generator)
    assert all(turn * a == a * turn for a in field.standard.module.letters)
    assert turn**5 == linear.identity(4)
