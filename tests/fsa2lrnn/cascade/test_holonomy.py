"""The holonomy decomposition, against its definition in plain Python."""

import numpy as np
import pytest
from hypothesis import example, given

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.cascade.holonomy import _Tiling, holonomy
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.testing.strategies import machines, permutation_machines


def broken(cover, maps, start):
    """The first promise of a cover of a machine that does not hold; None if all do."""
    if cover.image[0] != start:
        return "start"
    if (cover.image[cover.delta] != maps[:, cover.image]).any():
        return "morphism"
    if reached(cover.delta, 0) != set(range(len(cover.image))):
        return "reachable"
    # [i, s, t]: whether coordinate i may be equal in s and t.
    columns = cover.values.T
    agree = (columns[:, :, None] == columns[:, None]) | (columns < 0)[:, :, None] | (columns < 0)[:, None]
    if (agree.all(axis=0) & (cover.image[:, None] != cover.image)).any():
        return "decode"
    for i, level in enumerate(cover.levels):
        taken = set(columns[i].tolist()) - {-1}
        if taken != set(range(len(taken))):
            return "numbering"
        below = [j for j, other in enumerate(cover.levels) if other < level]
        alike = agree[[*below, i]].all(axis=0)
        for targets in cover.delta:
            if (alike & ~agree[i][np.ix_(targets, targets)]).any():
                return "dependency"
    return None


def reached(delta, state):
    seen = {state}
    queue = [state]
    for s in queue:
        new = set(delta[:, s].tolist()) - seen
        seen |= new
        queue += new
    return seen


def moves(cover):
    """For each coordinate what it is seen to do, as dicts from old to new value, where it is free neither time."""
    for i, level in enumerate(cover.levels):
        above = cover.values[:, [j for j, other in enumerate(cover.levels) if other < level]]
        seen = {}
        for a, targets in enumerate(cover.delta):
            for s, t in enumerate(targets):
                old, new = int(cover.values[s, i]), int(cover.values[t, i])
                if min(old, new) >= 0:
                    seen.setdefault((a, above[s].tobytes()), {})[old] = new
        yield list(seen.values())


def is_constant(move):
    return len(set(move.values())) == 1


@given(machines(max_states=6, max_letters=3))
def test_a_cover_that_moves_by_permutations_and_resets(m):
    cover = holonomy(m.delta, m.start)
    assert broken(cover, m.delta, m.start) is None
    assert all(is_constant(move) or len(set(move.values())) == len(move) for seen in moves(cover) for move in seen)


@given(permutation_machines())
def test_permutations_have_one_coordinate_the_state(m):
    cover = holonomy(m.delta, m.start)
    assert broken(cover, m.delta, m.start) is None
    assert cover.sizes == (len(reached(m.delta, m.start)),)


@given(machines(max_states=4, max_letters=2))
def test_heights_and_tiles_are_those_of_the_definition(m):
    maps = [tuple(row) for row in m.delta.tolist()]
    words = {tuple(range(m.n_states))}
    while longer := {tuple(a[q] for q in word) for word in words for a in maps} - words:
        words |= longer
    family = {frozenset(word) for word in words} | {frozenset([q]) for q in range(m.n_states)}
    below = {(p, r) for p in family for r in family if any(p <= {word[q] for q in r} for word in words)}
    height = {}
    for r in sorted(family, key=lambda r: (len(r), sum((p, r) in below for p in family))):
        lower = [height[p] for p in family if (p, r) in below and (r, p) not in below]
        height[r] = 0 if len(r) == 1 else 1 + max(lower)

    tiling = _Tiling.of(m.delta, 100)
    sets = [frozenset(np.flatnonzero(row).tolist()) for row in tiling.sets]
    assert sets[0] == frozenset(range(m.n_states))
    assert len(sets) == len(set(sets))
    assert dict(zip(sets, tiling.height.tolist(), strict=True)) == height
    for r, row in zip(sets, tiling.tiles, strict=True):
        proper = {p for p in family if p < r}
        maximal = {p for p in proper if not any(p < other for other in proper)}
        found = [sets[i] for i in row if i >= 0]
        assert (set(found), len(found)) == (maximal, len(maximal))


@given(machines(max_states=6, max_letters=2))
@example(MooreMachine([[1, 2, 1, 3, 1, 4], [1, 3, 2, 4, 5, 0]], range(6)))
def test_no_chain_is_left_behind_where_no_state_is(m):
    """If every state leads to every other, so does every chain."""
    if all(reached(m.delta, q) == set(range(m.n_states)) for q in range(m.n_states)):
        cover = holonomy(m.delta, m.start)
        assert all(0 in reached(cover.delta, s) for s in range(len(cover.image)))


def test_limits():
    m = zoo.all_maps(5)
    with pytest.raises(BudgetExceeded, match=r"set of all 5 states to more than 30 sets: allow more, or keep one"):
        holonomy(m.delta, m.start, max_sets=30)
    assert len(holonomy(m.delta, m.start, max_sets=31, max_chains=120).image) == 120
    with pytest.raises(BudgetExceeded, match=r"more than 119 chains of 4 coordinates: allow more, or keep one block"):
        holonomy(m.delta, m.start, max_chains=119)
