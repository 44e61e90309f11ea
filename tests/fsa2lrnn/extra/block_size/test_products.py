"""What products of Householder factors need: ranks, inner products, keys of partial permutations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size.constituents import constituents
from fsa2lrnn.extra.block_size.products import (
    factors,
    largest_rank,
    least_factors,
    separates,
    without_inner_product,
)
from fsa2lrnn.families.householder import paths, sink_keys, sink_of
from fsa2lrnn.families.modules import functions_module


@st.composite
def partial_permutations(draw):
    """A map of n states that is one to one but for those it sends to the last."""
    n = draw(st.integers(2, 7))
    image = draw(st.permutations(range(n - 1)))
    kept = draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))
    return np.array([*(q if keep else n - 1 for q, keep in zip(image, kept, strict=True)), n - 1])


@given(partial_permutations())
def test_keys_multiply_to_the_map_and_are_as_many_as_its_rank(row):
    n = len(row)
    wanted = np.zeros((n, n), int)
    for q in range(n - 1):
        if row[q] < n - 1:
            wanted[row[q], q] = 1
    A = np.eye(n, dtype=int)
    A[-1, -1] = 0
    found = sink_keys(row, n - 1)
    for key in found:
        k = np.array(key)
        A = (np.eye(n, dtype=int) - np.outer(k, k)) @ A
    assert np.array_equal(A, wanted)
    assert len(found) == np.linalg.matrix_rank((wanted - np.eye(n))[: n - 1, : n - 1])
    chains, cycles = paths(row, n - 1)
    assert len(found) == sum(map(len, chains)) + sum(len(cycle) - 1 for cycle in cycles)


def test_sinks():
    assert sink_of(zoo.dyck(2, 2).delta) is not None
    assert sink_of(zoo.sum_mod(3).delta) is None
    assert sink_of(zoo.cerny(4).delta) is None


def found_of(machine):
    module = functions_module(machine.delta)
    return module, factors(machine.delta, constituents(module, lambda: None), lambda: None)


@pytest.mark.parametrize(("task", "counts"), [("group(S4)", [1, 1, 2, 3]), ("sum_mod(5)", [2]), ("group(A4)", [2, 2])])
def test_ranks_on_the_real_constituents(task, counts):
    """S4 by an exchange and a 4-cycle: 1 each on signs and on the triangle, 1 and 3, or 2 and 2, on the cube."""
    module, found = found_of(zoo.from_task(task))
    assert sorted(found.counts) == counts
    assert not any(found.forbidden)
    assert largest_rank(module) >= max(counts)


@pytest.mark.parametrize("task", ["group(S3)", "group(Q8)", "resettable_counter(4)", "dyck(1,3)", "elevator(4)"])
def test_an_inner_product_that_exists_is_not_denied(task):
    machine = zoo.from_task(task).minimise()
    for kind in constituents(functions_module(machine.delta), lambda: None):
        assert without_inner_product(kind, machine.delta) == ()


@pytest.mark.parametrize("task", ["cerny(4)", "tomita(4)", "all_maps(3)", "mod_arith(2)"])
def test_machines_that_no_number_of_factors_represents(task):
    module, found = found_of(zoo.from_task(task).minimise())
    assert any(found.forbidden)
    assert least_factors(module, found, lambda: None) is None


def test_functions_that_tell_all_states_apart():
    module = functions_module(zoo.sum_mod(3).delta)
    assert separates(module.word(()))
