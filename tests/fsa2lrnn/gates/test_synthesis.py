"""Gates from tables: right on every key, one unit a box."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import NotExact
from fsa2lrnn.gates import Coordinate, ReluGate, features, synthesise


@given(st.data())
def test_a_gate_gives_each_key_its_target(labelled_tables, data):
    keys, labels = data.draw(labelled_tables)
    lanes = data.draw(st.tuples(*(st.booleans() for _ in keys.T)))
    coordinates = [Coordinate(int(m) + 1, lane) for m, lane in zip(keys.max(0), lanes, strict=True)]
    targets = np.array([[0, 1], [2, -1], [-3, 1]])[labels]
    gate = synthesise(keys, targets, coordinates)
    assert np.array_equal(gate(features(keys, coordinates)), targets)
    assert set(np.unique(gate.W1)) <= {-1, 0, 1}


def test_lanes_leave_out_the_feature_of_zero():
    coordinates = [Coordinate(3, lanes=True), Coordinate(1, lanes=True), Coordinate(2)]
    assert [coordinate.width for coordinate in coordinates] == [2, 0, 2]
    assert features(np.array([[0, 0, 1], [2, 0, 0]]), coordinates).tolist() == [[0, 0, 0, 1], [0, 1, 1, 0]]


def test_a_set_with_zero_is_told_by_the_lanes_outside():
    keys = np.arange(4)[:, None]
    gate = synthesise(keys, np.array([[1], [0], [1], [0]]), [Coordinate(4, lanes=True)])
    assert gate.n_units == 1
    assert sorted(gate(features(keys, [Coordinate(4, lanes=True)])).ravel().tolist()) == [0, 0, 1, 1]


def test_equal_targets_take_no_unit():
    gate = synthesise(np.array([[0], [1]]), np.array([[3, 4], [3, 4]]), [Coordinate(2)])
    assert (gate.n_units, gate.b2.tolist()) == (0, [3, 4])


def test_a_gate_with_sums_that_bfloat16_rounds_is_refused():
    with pytest.raises(NotExact, match="a gate's sums reach 300, but bfloat16 holds all integers only up to 256"):
        synthesise(np.array([[0]]), np.array([[300]]), [Coordinate(1)])


def test_a_wrong_gate_is_noticed(monkeypatch):
    def crooked(W1, b1, W2, b2):
        return ReluGate(W1, b1 + 1, W2, b2)

    monkeypatch.setattr("fsa2lrnn.gates.gate.ReluGate", crooked)
    with pytest.raises(NotExact, match=r"gives a wrong value for key \[\d\]"):
        synthesise(np.array([[0], [1]]), np.array([[0], [1]]), [Coordinate(2)])
