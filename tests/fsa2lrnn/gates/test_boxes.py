"""Few boxes, each key of a label that is not the default in exactly one of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.gates import boxes


def boxes_round(key, found):
    return [label for sets, label in found if all(s is None or x in s for x, s in zip(key, sets, strict=True))]


@given(st.data())
def test_every_key_is_in_one_box_of_its_label_or_in_none(labelled_tables, data):
    keys, labels = data.draw(labelled_tables)
    found, default = boxes(keys, labels)
    for key, label in zip(keys.tolist(), labels.tolist(), strict=True):
        assert boxes_round(key, found) == ([] if label == default else [label])


def grid(*sizes):
    return np.array(list(itertools.product(*map(range, sizes))))


def test_one_label_takes_no_box():
    assert boxes(grid(3, 3), np.full(9, 4)) == ([], 4)


def test_a_coordinate_that_says_nothing_is_left_out():
    keys = grid(4, 5, 3)
    found, default = boxes(keys, (keys[:, 1] == 2) * 1)
    assert len(found) == 1
    assert found[0][0][0] is None
    assert found[0][0][2] is None
    assert found[0][0][1] == ({2} if default == 0 else {0, 1, 3, 4})


def test_values_that_act_alike_share_a_box():
    keys = grid(6, 5)  # a letter and a register: letters 1 and 4 add it, the others do nothing
    labels = np.where(np.isin(keys[:, 0], [1, 4]), keys[:, 1], 0)
    found, default = boxes(keys, labels)
    assert (len(found), default) == (4, 0)
    assert all(sets[0] == {1, 4} for sets, _ in found)


def test_what_is_not_in_the_table_makes_boxes_larger():
    keys = np.array([[0, 0], [1, 1], [2, 2], [3, 3]])
    assert len(boxes(keys, np.array([0, 0, 1, 1]))[0]) == 1


def test_the_default_is_the_label_that_would_take_most_boxes():
    keys = grid(4, 4)
    labels = np.where(keys.sum(1) % 2 == 0, 7, 3)
    labels[keys[:, 0] == 0] = 3  # of 3 a row joins, of 7 nothing does
    found, default = boxes(keys, labels)
    other = 10 - default
    assert {label for _, label in found} == {other}
    assert len(found) <= 6


def smallest_cover(keys, good):
    """By brute force: the least number of boxes that hold each good key once and no other."""
    values = [sorted(set(column)) for column in keys.T.tolist()]
    subsets = [[frozenset(c) for r in range(1, len(v) + 1) for c in itertools.combinations(v, r)] for v in values]
    masks = set()
    for sets in itertools.product(*subsets):
        inside = [all(x in s for x, s in zip(key, sets, strict=True)) for key in keys.tolist()]
        if any(inside) and not any(i and not g for i, g in zip(inside, good, strict=True)):
            masks.add(sum(1 << n for n, i in enumerate(inside) if i))
    target = sum(1 << n for n, g in enumerate(good) if g)
    reached, count = {0}, 0
    while target not in reached:
        reached = {r | m for r in reached for m in masks if not r & m}
        count += 1
    return count


@pytest.mark.parametrize("seed", range(4))
def test_no_more_than_a_quarter_above_the_least_on_small_tables(seed):
    rng = np.random.default_rng(seed)
    keys = grid(3, 3)
    found_all, least_all = 0, 0
    for _ in range(10):
        labels = rng.integers(0, 2, len(keys))
        found, default = boxes(keys, labels)
        found_all += len(found)
        least_all += smallest_cover(keys, labels != default)
    assert found_all <= 1.25 * least_all


def test_a_key_must_not_stand_twice():
    with pytest.raises(InvalidMachine, match="of 2 keys some are equal"):
        boxes(np.array([[1, 2], [1, 2]]), np.array([0, 1]))


def test_large_tables_of_few_rules_are_covered_by_few_boxes():
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 4, (20_000, 12)), axis=0)
    labels = np.where((keys[:, 3] == 1) & (keys[:, 7] != 2), 1, np.where(np.isin(keys[:, 5], [0, 2]), 2, 0))
    assert len(boxes(keys, labels)[0]) <= 6
