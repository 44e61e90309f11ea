"""Transpositions between two sets of points, as heads in exact numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.extra.huggingface.transpositions import moves_by_transpositions, transposition_heads, two_sides


@st.composite
def components(draw):
    """Maps that are transpositions between two sets, resets or the identity, and a start."""
    n = draw(st.integers(2, 6))
    start = draw(st.integers(0, n - 1))
    second = draw(st.sets(st.sampled_from([t for t in range(n) if t != start]), min_size=1))
    first = [t for t in range(n) if t not in second]
    maps = list[list[int]]()
    for _ in range(draw(st.integers(1, 5))):
        i, j = draw(st.sampled_from(first)), draw(st.sampled_from(sorted(second)))
        kind = draw(st.sampled_from(["exchange", "reset", "start", "nothing"]))
        exchange = [j if q == i else i if q == j else q for q in range(n)]
        maps.append({"exchange": exchange, "reset": [j] * n, "start": [start] * n, "nothing": list(range(n))}[kind])
    return np.array(maps), start


@given(components(), st.lists(st.integers(0, 4), max_size=30))
def test_heads_are_where_the_component_is(component, word):
    maps, start = component
    points = [t for t in range(maps.shape[1]) if t != start]
    orbits, state = transposition_heads(maps, start), start
    held = [np.zeros_like(orbit.states[0]) for orbit in orbits]
    for a in (a % len(maps) for a in word):
        state = int(maps[a, state])
        for i, (orbit, t) in enumerate(zip(orbits, points, strict=True)):
            held[i] = orbit.head.step(held[i], a)
            assert np.array_equal(held[i], orbit.states[state])
            assert np.array_equal(orbit.head.mark(held[i]), orbit.marks[int(t == state)])


@given(components())
def test_keys_are_unit_vectors_that_a_layer_reaches(component):
    for orbit in transposition_heads(*component):
        assert np.isin(orbit.head.keys, (0, 0.5)).all()
        norms = (orbit.head.keys**2).sum(axis=1)
        assert np.array_equal(norms, orbit.head.betas > 0)
        assert (orbit.head.values >= 0).all()


@pytest.mark.parametrize(
    ("pairs", "targets", "has_sides"),
    [
        ([(0, 1), (1, 2), (2, 3), (3, 0)], [], True),
        ([(0, 1), (1, 2), (2, 0)], [], False),
        ([(1, 2), (2, 3), (3, 1)], [], False),
        ([(0, 1), (0, 2), (0, 3)], [1, 2, 3], True),
        ([(1, 2)], [1, 2], False),
        ([(0, 1), (1, 2)], [0, 2], False),
    ],
)
def test_two_sides(pairs, targets, has_sides):
    side = two_sides(4, 0, pairs, targets)
    assert (side is not None) == has_sides
    if side is not None:
        assert not side[0]
        assert all(side[i] != side[j] for i, j in pairs)
        assert all(side[t] for t in targets if t)


@pytest.mark.parametrize("row", [[1, 2, 0], [1, 0, 3, 2], [0, 0, 1]])
def test_other_maps(row):
    assert moves_by_transpositions(np.array([row]), 0) is None
    with pytest.raises(ValueError, match="are not transpositions between two sets"):
        transposition_heads(np.array([row]), 0)
