"""A gate over the integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import InvalidMachine, NotExact
from fsa2lrnn.gates import ReluGate


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


def test_without_units_a_gate_is_constant():
    gate = ReluGate(np.zeros((0, 3), int), np.zeros(0, int), np.zeros((2, 0), int), np.array([4, 5]))
    assert gate(np.ones((1, 3), int)).tolist() == [[4, 5]]


@pytest.mark.parametrize("change", [{"b1": np.zeros(2, int)}, {"W2": np.ones((1, 2), int)}, {"W1": np.ones(1, int)}])
def test_shapes_must_fit(change):
    parts = {"W1": np.ones((1, 2), int), "b1": np.zeros(1, int), "W2": np.ones((1, 1), int), "b2": np.zeros(1, int)}
    with pytest.raises(InvalidMachine, match="the shapes of a gate do not fit: W1"):
        ReluGate(**{**parts, **change})


def test_weights_are_integers_and_read_only():
    one = np.ones((1, 1), int)
    with pytest.raises(InvalidMachine, match="W2 of a gate has dtype float64: give integers"):
        ReluGate(one, np.zeros(1, int), one * 0.5, np.zeros(1, int))
    gate = ReluGate(one, np.zeros(1, int), one, np.zeros(1, int))
    with pytest.raises(ValueError, match="read-only"):
        gate.W1[0, 0] = 2


def test_sums_that_float64_would_round_are_refused():
    one = np.ones((1, 1), int)
    gate = ReluGate(one * 2**30, np.zeros(1, int), one, np.zeros(1, int))
    assert gate(one * 2**22).tolist() == [[2**52]]
    with pytest.raises(NotExact, match="float64 is exact to 2"):
        gate(one * 2**23)


def test_the_largest_sum_counts_both_signs():
    gate = ReluGate(np.array([[3, -2]]), np.array([-1]), np.array([[2]]), np.array([-4]))
    assert gate.largest_sum(np.array([[1, 1]])) == 6
    assert gate.largest_sum(np.array([[2, 0]])) == 14
