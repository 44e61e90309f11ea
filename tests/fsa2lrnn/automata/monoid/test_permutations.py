"""Solvability of permutation groups: by known groups, and by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata.monoid import subgroups as permutations

compiling = settings(deadline=None)


def symmetric(n: int) -> np.ndarray:
    return np.array([[1, 0, *range(2, n)], [*range(1, n), 0]], np.uint32)


def alternating(n: int) -> np.ndarray:
    rows = [list(range(n)) for _ in range(2, n)]
    for k, row in enumerate(rows, 2):
        row[0], row[1], row[k] = 1, k, 0
    return np.array(rows, np.uint32)


def affine(p: int) -> np.ndarray:
    """x ↦ x + 1 and x ↦ g x modulo p, g = 2 or 3 a generator: solvable, of order p (p − 1)."""
    x = np.arange(p)
    return np.array([(x + 1) % p, (x * {5: 2, 7: 3, 11: 2, 13: 2, 101: 2}[p]) % p], np.uint32)


@pytest.mark.parametrize(
    ("generators", "order", "solvable"),
    [
        (symmetric(2), 2, True),
        (symmetric(4), 24, True),
        (symmetric(5), 120, False),
        (alternating(4), 12, True),
        (alternating(5), 60, False),
        (alternating(6), 360, False),
        (symmetric(7), 5040, False),
        (affine(13), 156, True),
        (affine(101), 10_100, True),
    ],
)
def test_known_groups(generators, order, solvable):
    assert len(permutations.elements(generators, order)) == order
    assert permutations.elements(generators, order - 1) is None
    assert permutations.is_solvable_group(generators, 100_000) is solvable
    assert permutations.nested_commutators_survive(generators) is not solvable


def wreath_of_symmetric_4() -> np.ndarray:
    """S₄ on each of four blocks of four, and on the blocks: order 24⁵, solvable."""
    q = np.arange(16)
    rows = [q.copy() for _ in range(4)]
    rows[0][:2], rows[1][:4] = [1, 0], [1, 2, 3, 0]
    rows[2][:8] = np.roll(rows[2][:8], 4)
    return np.array([*rows[:3], np.roll(q, 4)], np.uint32)


def test_beyond_the_cap():
    assert permutations.is_solvable_group(symmetric(30), 1_000) is False
    assert permutations.is_solvable_group(wreath_of_symmetric_4(), 1_000) is None
    assert permutations.is_solvable_group(affine(101), 1_000) is None


@compiling
@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.permutations(range(n)), min_size=1, max_size=3)))
def test_small_groups(rows):
    generators = np.array(rows, np.uint32)
    group = permutations.elements(generators, 1_000)
    chosen = permutations.generating_set(group, 1_000)
    assert len(permutations.elements(group[chosen], 1_000) if chosen else group[:1]) == len(group)
    assert 2 ** len(chosen) <= len(group)
    nonsolvable = len(rows[0]) == 5 and len(group) in (60, 120)  # the only ones on five points: A₅, S₅
    assert permutations.is_solvable_group(generators, 1_000) is not nonsolvable
    if not nonsolvable:
        assert not permutations.nested_commutators_survive(generators)


def test_a_generating_set_stops_at_the_cap():
    group = permutations.elements(symmetric(5), 1_000)
    assert len(permutations.generating_set(group, 1_000)) <= 6
    chosen = permutations.generating_set(group, 10)
    assert permutations.elements(group[chosen], 10) is None
    assert permutations.elements(group[chosen[:-1]], 10) is not None
