"""Points for the letters of a group: they move the vectors of the states as the letters move the states."""

import numpy as np
import pytest
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.families.householder import fewest_points, transpositions
from fsa2lrnn.testing.strategies import permutation_machines


def assert_moved(points, permutations):
    assert points.tells_all_apart
    for row, moves in zip(permutations, points.moves, strict=True):
        assert sorted(moves) == list(range(len(moves)))
        assert np.array_equal(points.vectors[row][:, moves], points.vectors)


@pytest.mark.slow
@given(permutation_machines(max_states=6))
def test_vectors_move_as_states_do(machine):
    points = fewest_points(machine.delta, False)
    assert points is None or len(points.vectors) == machine.n_states
    if points is not None:
        assert_moved(points, machine.delta)
        assert points.factors.tolist() == [len(transpositions(moves)) for moves in points.moves]


@pytest.mark.parametrize(("name", "points", "factors"), [("S4", 4, 3), ("A5", 5, 2), ("Z2xZ3xS3", 8, 2)])
def test_groups_move_few_points(name, points, factors):
    delta = zoo.group(name).delta
    found = fewest_points(delta, False)
    assert found is not None
    assert_moved(found, delta)
    assert (found.moves.shape[1], found.factors.max()) == (points, factors)


def test_resets_ask_for_few_points():
    """All states at numbers on a single point, where nothing but resets moves them; large groups are not tried."""
    one, cycle = fewest_points(np.arange(5)[None], True), fewest_points(zoo.sum_mod(7).delta, True)
    assert one is not None
    assert cycle is not None
    assert one.moves.tolist() == [[0]]
    assert len(np.unique(one.vectors)) == 5
    assert cycle.moves.shape[1] == 7
    assert fewest_points(zoo.sum_mod(211).delta, False) is None
