"""Gates from tables: few boxes, each key in exactly one of its label, one unit per box, right on every key."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.compile.gate_synthesis import Coordinate, Table, boxes, features, synthesise
from fsa2lrnn.compile.integer_tables import ReluGate
from fsa2lrnn.errors import InvalidMachine, NotExact


@st.composite
def labelled_tables(draw, max_coordinates=4, max_values=4, max_labels=3):
    """(keys, labels): some distinct rows of values, each with a label. Shrinks towards one key and label 0."""
    n_values = draw(st.lists(st.integers(1, max_values), min_size=1, max_size=max_coordinates))
    row = st.tuples(*(st.integers(0, m - 1) for m in n_values))
    keys = draw(st.lists(row, min_size=1, max_size=60, unique=True))
    labels = draw(st.lists(st.integers(0, max_labels - 1), min_size=len(keys), max_size=len(keys)))
    return np.array(keys), np.array(labels)


def boxes_round(key, found):
    return [label for sets, label in found if all(s is None or x in s for x, s in zip(key, sets, strict=True))]


@given(st.data())
def test_every_key_is_in_one_box_of_its_label_or_in_none(data):
    keys, labels = data.draw(labelled_tables())
    found, default = boxes(keys, labels)
    for key, label in zip(keys.tolist(), labels.tolist(), strict=True):
        assert boxes_round(key, found) == ([] if label == default else [label])


def grid(*sizes):
    return np.array(list(itertools.product(*map(range, sizes))))


@pytest.mark.long
def test_few_rules_are_covered_by_few_boxes():
    keys = grid(4, 5, 3)
    found, default = boxes(keys, (keys[:, 1] == 2) * 1)
    assert len(found) == 1
    assert found[0][0][0] is None
    assert found[0][0][2] is None
    assert found[0][0][1] == ({2} if default == 0 else {0, 1, 3, 4})
    keys = grid(6, 5)  # a letter and a register: letters 1 and 4 add it, the others do nothing
    labels = np.where(np.isin(keys[:, 0], [1, 4]), keys[:, 1], 0)
    found, default = boxes(keys, labels)
    assert (len(found), default) == (4, 0)
    assert all(sets[0] == {1, 4} for sets, _ in found)
    keys = grid(4, 4)
    labels = np.where(keys.sum(1) % 2 == 0, 7, 3)
    labels[keys[:, 0] == 0] = 3  # of 3 a row joins, of 7 nothing does
    found, default = boxes(keys, labels)
    other = 10 - default
    assert {label for _, label in found} == {other}
    assert len(found) <= 6
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 4, (20_000, 12)), axis=0)
    labels = np.where((keys[:, 3] == 1) & (keys[:, 7] != 2), 1, np.where(np.isin(keys[:, 5], [0, 2]), 2, 0))
    assert len(boxes(keys, labels)[0]) <= 6


def held(sets, keys):
    return np.array([all(x in s for x, s in zip(key, sets, strict=True)) for key in keys.tolist()])


@given(st.data())
def test_a_cover_holds_each_good_key_once_and_no_other_even_without_work_to_spend(data):
    keys, labels = data.draw(labelled_tables())
    good = labels == labels[0]
    lazy = Table(keys)
    lazy.work = 0
    for table in (Table(keys), lazy):
        assert (sum(held(sets, keys).astype(int) for sets in table.cover(good, None)) == good).all()


def few_of_many(seed):
    """Some 80 of 729 possible keys, two in five of them good."""
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, 3, (80, 6)), axis=0)
    return keys, rng.random(len(keys)) < 0.4


def test_growing_makes_use_of_keys_that_are_not_there_and_decision_trees_find_rules():
    total = 0
    for keys, good in map(few_of_many, range(20)):
        found = Table(keys).cover(good, None)
        assert (sum(held(sets, keys).astype(int) for sets in found) == good).all()
        total += len(found)
    assert total <= 195
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 4, (2_000, 8)), axis=0)
    table = Table(keys)
    table.work = 0
    good = ((keys[:, 3] == 1) & (keys[:, 7] != 2)) | np.isin(keys[:, 5], [0, 2])
    assert len(table.cover(good, None)) == 2
    keys = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 0], [0, 3, 3]])
    assert len(Table(keys).cover(np.array([True, True, False, False]), None)) == 1


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_a_gate_is_its_formula(width, units, out, seed):
    rng = np.random.default_rng(seed)
    W1, b1, W2, b2 = (rng.integers(-9, 9, shape) for shape in [(units, width), units, (out, units), out])
    gate = ReluGate(W1, b1, W2, b2)
    assert (gate.width_in, gate.n_units, gate.width_out) == (width, units, out)
    u = rng.integers(-9, 9, (2, 3, width))
    wanted = [[W2 @ np.maximum(W1 @ x + b1, 0) + b2 for x in row] for row in u]
    assert np.array_equal(gate(u), np.array(wanted).reshape(2, 3, out))
    assert gate(u).dtype == np.int64


def test_shapes_fit_and_weights_are_integers_and_read_only():
    parts = {"W1": np.ones((1, 2), int), "b1": np.zeros(1, int), "W2": np.ones((1, 1), int), "b2": np.zeros(1, int)}
    for change in ({"b1": np.zeros(2, int)}, {"W2": np.ones((1, 2), int)}, {"W1": np.ones(1, int)}):
        with pytest.raises(InvalidMachine, match="the shapes of a gate do not fit: W1"):
            ReluGate(**{**parts, **change})
    one = np.ones((1, 1), int)
    with pytest.raises(InvalidMachine, match="W2 of a gate has dtype float64: give integers"):
        ReluGate(one, np.zeros(1, int), one * 0.5, np.zeros(1, int))
    gate = ReluGate(one, np.zeros(1, int), one, np.zeros(1, int))
    with pytest.raises(ValueError, match="read-only"):
        gate.W1[0, 0] = 2


def test_sums_are_bounded_and_the_largest_counts_both_signs():
    one = np.ones((1, 1), int)
    gate = ReluGate(one * 2**30, np.zeros(1, int), one, np.zeros(1, int))
    assert gate(one * 2**22).tolist() == [[2**52]]
    with pytest.raises(NotExact, match="float64 is exact to 2"):
        gate(one * 2**23)
    gate = ReluGate(np.array([[3, -2]]), np.array([-1]), np.array([[2]]), np.array([-4]))
    assert (gate.largest_sum(np.array([[1, 1]])), gate.largest_sum(np.array([[2, 0]]))) == (6, 14)


@given(st.data())
def test_a_gate_gives_each_key_its_target(data):
    keys, labels = data.draw(labelled_tables())
    omits = data.draw(st.tuples(*(st.booleans() for _ in keys.T)))
    coordinates = [Coordinate(int(m) + 1, omits_zero) for m, omits_zero in zip(keys.max(0), omits, strict=True)]
    targets = np.array([[0, 1], [2, -1], [-3, 1]])[labels]
    gate = synthesise(keys, targets, coordinates)
    assert np.array_equal(gate(features(keys, coordinates)), targets)
    assert set(np.unique(gate.W1)) <= {-1, 0, 1}


def test_few_units_without_zero_features_and_for_equal_targets():
    keys = np.arange(4)[:, None]
    gate = synthesise(keys, np.array([[1], [0], [1], [0]]), [Coordinate(4, omits_zero=True)])
    assert gate.n_units == 1
    assert sorted(gate(features(keys, [Coordinate(4, omits_zero=True)])).ravel().tolist()) == [0, 0, 1, 1]
    gate = synthesise(np.array([[0], [1]]), np.array([[3, 4], [3, 4]]), [Coordinate(2)])
    assert (gate.n_units, gate.b2.tolist()) == (0, [3, 4])
    coordinates = [Coordinate(3, omits_zero=True), Coordinate(1, omits_zero=True), Coordinate(2)]
    assert [coordinate.width for coordinate in coordinates] == [2, 0, 2]
    assert features(np.array([[0, 0, 1], [2, 0, 0]]), coordinates).tolist() == [[0, 0, 0, 1], [0, 1, 1, 0]]


def test_wrong_gates_equal_keys_and_sums_that_bfloat16_rounds_are_noticed(monkeypatch):
    with pytest.raises(NotExact, match="a gate's sums reach 300, but bfloat16 holds all integers only up to 256"):
        synthesise(np.array([[0]]), np.array([[300]]), [Coordinate(1)])
    with pytest.raises(InvalidMachine, match="of 2 keys some are equal"):
        boxes(np.array([[1, 2], [1, 2]]), np.array([0, 1]))

    def crooked(W1, b1, W2, b2):
        return ReluGate(W1, b1 + 1, W2, b2)

    monkeypatch.setattr("fsa2lrnn.compile.gate_synthesis.ReluGate", crooked)
    with pytest.raises(NotExact, match=r"gives a wrong value for key \[\d\]"):
        synthesise(np.array([[0], [1]]), np.array([[0], [1]]), [Coordinate(2)])
