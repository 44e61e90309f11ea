"""Dyadic keys: which letters are reflections, and which are not."""

from itertools import combinations

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.extra.huggingface.reflections import reflections


@pytest.mark.parametrize(("n", "order"), [(2, 2), (3, 6), (4, 24), (5, 120)])
def test_neighbours_exchanged(n, order):
    found = reflections(zoo.group(f"S{n}", "transpositions").delta, 0)
    assert len(found.states) == order
    assert set(np.unique(found.head.keys)) <= {0.0, 0.5, 1.0}
    assert np.array_equal((found.head.keys**2).sum(axis=1), np.ones(n - 1))


def test_all_three_exchanges_of_three_points_fit_through_a_cover():
    """Their roots can't all have non-negative products, but S4 acts on three pairs of pairs."""
    rows = []
    for i, j in combinations(range(3), 2):
        row = np.arange(3)
        row[[i, j]] = row[[j, i]]
        rows.append(row)
    found = reflections(np.array(rows), 0)
    assert len(found.states) == 24


def test_resets_to_the_start_and_letters_that_do_nothing():
    found = reflections(np.array([[1, 0], [0, 1], [0, 0]]), 0)
    assert len(found.states) == 2
    assert found.table.tolist() == [[1, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    "machine",
    [zoo.sum_mod(3), zoo.group("D4"), zoo.flip_flop(), MooreMachine([[1, 0, 2, 3], [1, 2, 3, 0]], range(4))],
)
def test_what_is_no_such_group(machine):
    assert reflections(machine.delta, machine.start) is None
