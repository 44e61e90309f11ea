import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.extra.report.drawing.ranks import columns_of, distances, rank, spread


def crossings(columns, edges):
    """By looking at every pair of edges."""
    place = {node: (c, i) for c, column in enumerate(columns) for i, node in enumerate(column)}
    ends = [sorted((place[a], place[b])) for a, b in edges]
    return sum(
        (a[1] - c[1]) * (b[1] - d[1]) < 0
        for (a, b), (c, d) in itertools.combinations(ends, 2)
        if a[0] == c[0] and b[0] == d[0]
    )


def test_a_knot_is_undone():
    edges = [(0, 6), (1, 5), (2, 4), (3, 4), (4, 9), (5, 8), (6, 7)]
    found = rank([0] * 4 + [1] * 3 + [2] * 3, edges, 50, 20)
    assert crossings(found.columns, edges) == 0


def test_an_edge_that_passes_columns_has_a_waypoint_in_each_and_backwards_too():
    found = rank([0, 1, 2, 3], [(0, 1), (1, 2), (2, 3), (0, 3), (3, 1)], 50, 20)
    assert [len(found.routes[edge]) for edge in ((0, 1), (0, 3), (3, 1))] == [0, 2, 1]
    where = {node: c for c, column in enumerate(found.columns) for node in column}
    assert [where[node] for node in found.routes[0, 3]] == [1, 2]
    assert where[found.routes[3, 1][0]] == 2
    assert all(not route for route in rank([0, 1, 2], [(0, 2)], 50, None).routes.values())


def test_columns_follow_the_distance_and_tall_ones_are_broken():
    edges = [(0, q) for q in range(1, 8)] + [(q, 8) for q in range(4, 8)]
    steps = distances(9, edges, 0)
    assert steps == [0] + [1] * 7 + [2]
    found = columns_of(steps, edges, 4)
    assert found[0] == 0
    assert sorted(found[1:8]) == [1] * 4 + [2] * 3
    assert found[8] == 3
    assert set(found[4:7]) <= {1, 2}
    assert found[1] == found[2] == found[3] == 1  # what leads on comes last


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(1, 5)), min_size=1, max_size=6))
def test_places_are_apart_and_no_shift_of_a_part_is_nearer(pairs):
    wanted, halves = (list(part) for part in zip(*pairs, strict=True))
    found = spread(wanted, halves)
    gaps = np.diff(found) - (np.array(halves[:-1]) + halves[1:])
    assert (gaps > -1e-9).all()
    cost = np.square(np.subtract(found, wanted)).sum()
    for i, j, step in itertools.product(range(len(found)), range(len(found)), (-1e-3, 1e-3)):
        moved = np.array(found)
        moved[min(i, j) : max(i, j) + 1] += step
        if (np.diff(moved) - (np.array(halves[:-1]) + halves[1:]) > -1e-9).all():
            assert np.square(moved - wanted).sum() > cost - 1e-9


def test_neighbours_lie_level_where_nothing_is_in_the_way():
    found = rank([0, 1, 1, 2], [(0, 1), (1, 3)], 50, 20)
    assert found.height[0] == pytest.approx(found.height[1], abs=0.1) == pytest.approx(found.height[3], abs=0.1)
