"""The chain holds every submodule of bounded dimension: checked over small fields, where all can be listed."""

import itertools

import numpy as np
import pytest
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size.chain import chain
from fsa2lrnn.extra.block_size.constituents import constituents
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import functions_module, restricted
from fsa2lrnn.testing.strategies import machines


def chain_of(machine, field="Q"):
    module = functions_module(machine.minimise().delta)
    return module, chain(module, constituents(module, lambda: None), field, lambda: None)


@pytest.mark.parametrize(
    ("source", "bounds"), [("sum_mod(5)", (1, 2, 4)), ("tomita(3)", (4, 4, 4)), ("subtraction(5)", (3, 5, 9))]
)
def test_the_bound_depends_on_the_field_by_weights_alone(source, bounds):
    assert tuple(chain_of(zoo.from_task(source), field)[1].bound for field in "CRQ") == bounds


@given(machines(6, 2).filter(lambda m: m.minimise().n_states > 1))
def test_levels_are_submodules_and_copies_are_a_basis(machine):
    module, found = chain_of(machine)
    assert found.sizes[0] == 0
    assert found.sizes[-1] == module.dimension == linear.rank(found.rows(len(found.sizes)))
    for c, size in enumerate(found.sizes):
        rows = found.rows(c)
        assert rows.nrows() == size
        assert not size or restricted(module, rows) is not None
    assert found.merged(found.bound) is None
    assert found.merged(found.bound - 1) is not None


@given(machines(5, 2).filter(lambda m: m.minimise().n_states > 2))
def test_every_function_generates_what_the_chain_says(machine):
    """dim 𝒜f = c puts f into U_c, for functions with values −1, 0, 1, and the sums that T30 (b) speaks of."""
    module, found = chain_of(machine)
    d = module.dimension
    inside = [_span(found.rows(c)) for c in range(len(found.sizes))]
    for values in itertools.product((-1, 0, 1), repeat=d):
        f = np.array(values)
        dimension = _generated(module, f)
        if dimension < len(inside):
            assert np.linalg.matrix_rank(np.vstack([inside[dimension], f])) == len(inside[dimension])


def _span(rows):
    values = [int(x.p) / int(x.q) for x in rows.entries()]
    return np.array(values).reshape(rows.nrows(), rows.ncols())


def _generated(module, f):
    letters = [np.array([[int(x.p) for x in row] for row in letter.tolist()]) for letter in module.letters]
    rows = [f]
    for row in rows:
        for letter in letters:
            if np.linalg.matrix_rank(np.array([*rows, row @ letter])) > len(rows):
                rows.append(row @ letter)
    return np.linalg.matrix_rank(np.array(rows))
