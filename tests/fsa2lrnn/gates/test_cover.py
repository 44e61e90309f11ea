"""The greedy methods one by one: each covers exactly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.gates.cover import Table, merge


def held(sets, keys):
    return np.array([all(x in s for x, s in zip(key, sets, strict=True)) for key in keys.tolist()])


@given(st.data())
def test_a_cover_holds_each_good_key_once_and_no_other(labelled_tables, data):
    keys, labels = data.draw(labelled_tables)
    good = labels == labels[0]
    count = sum(held(sets, keys).astype(int) for sets in Table(keys).cover(good, None))
    assert (count == good).all()


@given(st.data())
def test_without_work_to_spend_covers_are_still_right(labelled_tables, data):
    keys, labels = data.draw(labelled_tables)
    good = labels == labels[0]
    table = Table(keys)
    table.work = 0
    assert (sum(held(sets, keys).astype(int) for sets in table.cover(good, None)) == good).all()


def test_growing_joins_keys_that_differ_in_several_coordinates():
    keys = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 0], [0, 3, 3]])
    assert len(Table(keys).cover(np.array([True, True, False, False]), None)) == 1


def few_of_many(seed):
    """Some 80 of 729 possible keys, two in five of them good."""
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, 3, (80, 6)), axis=0)
    return keys, rng.random(len(keys)) < 0.4


def test_growing_makes_use_of_keys_that_are_not_there():
    """Merging the keys alone takes 473 boxes for these 20 tables, decision trees 314; growing takes 192."""
    total = 0
    for keys, good in map(few_of_many, range(20)):
        found = Table(keys).cover(good, None)
        assert (sum(held(sets, keys).astype(int) for sets in found) == good).all()
        total += len(found)
    assert total <= 195


def test_a_decision_tree_finds_the_rules_of_large_tables():
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 4, (2_000, 8)), axis=0)
    table = Table(keys)
    table.work = 0
    good = ((keys[:, 3] == 1) & (keys[:, 7] != 2)) | np.isin(keys[:, 5], [0, 2])
    assert len(table.cover(good, None)) == 2


def test_merging_keeps_what_is_covered():
    boxes = [(frozenset({0}), frozenset({0, 1})), (frozenset({2}), frozenset({0, 1})), (frozenset({1}), frozenset({0}))]
    assert sorted(map(str, merge(boxes))) == sorted(
        map(str, [(frozenset({0, 2}), frozenset({0, 1})), (frozenset({1}), frozenset({0}))])
    )
    assert merge([]) == []
