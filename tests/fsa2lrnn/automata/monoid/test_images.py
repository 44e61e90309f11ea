"""The images and their groups, against plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import Action
from fsa2lrnn.automata.monoid.elements import Images
from fsa2lrnn.automata.monoid.subgroups import elements
from fsa2lrnn.testing.strategies import machines

compiling = settings(deadline=None)


@compiling
@given(machines(max_states=5, max_letters=2))
def test_images_and_their_groups(brute, m):
    agree(m, brute)


@pytest.mark.parametrize(
    "source", ["all_maps(4)", "cerny(5)", "mod_arith(2)", "group(A4)", "remainder(6)", "dyck(1, 4)"]
)
def test_images_and_their_groups_in_the_zoo(brute, source):
    agree(zoo.from_task(source), brute)


def agree(m, brute):
    """The group of a root holds exactly the permutations that elements of the monoid make of it."""
    images, by_definition = Images(Action.of(m.minimise()), 1_000), brute(m)
    assert {tuple(images.members(i)) for i in range(len(images.sets))} == {
        tuple(sorted(set(f))) for f in by_definition.monoid
    }
    assert images.whole
    seen = set()
    for root in images.roots():
        members = images.members(root).tolist()
        generators, edges = images.generators(root)
        group = elements(generators, 1_000)
        expected = {
            tuple(members.index(f[q]) for q in members)
            for f in by_definition.monoid
            if {f[q] for q in members} == set(members)
        }
        assert {tuple(g) for g in group.tolist()} == expected
        assert len(expected) > 1
        seen.add(images.component[root])
        made = [permutation(images, members, word) for i, a in edges for word in images.words(root, i, a)]
        assert {tuple(g) for g in elements(np.array(made, np.uint32), 1_000).tolist()} == expected
    for i in range(len(images.sets)):
        members = images.members(i).tolist()
        moved = {
            f for f in by_definition.monoid
            if {f[q] for q in members} == set(members) and any(f[q] != q for q in members)
        }  # fmt: skip
        assert (images.component[i] in seen) == bool(moved)


def permutation(images, members, word):
    return [members.index(images.action.follow(q, word)[-1]) for q in members]


def test_intervals_of_a_lift():
    """Up and down squeeze all floors to intervals: n (n + 1) / 2 images, though the monoid is exponential."""
    images = Images(Action.of(zoo.elevator(60)), 100_000)
    assert (len(images.sets), images.whole, images.roots()) == (60 * 61 // 2, True, [])
    assert images.method == "by enumeration of the images, 1,830 sets of states"


def test_a_cap():
    images = Images(Action.of(zoo.elevator(60)), 100)
    assert (len(images.sets), images.whole) == (100, False)
    assert images.method == "capped at 100 sets of states"
