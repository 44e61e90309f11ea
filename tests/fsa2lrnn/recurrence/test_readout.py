"""Read-outs number the outputs."""

import numpy as np
import pytest

from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.recurrence import DenseReadout, StateReadout


def test_the_largest_logit_wins_and_the_first_among_equals():
    readout = DenseReadout(
        np.eye(2, dtype=int), np.array([0, -1]), np.array([[1, 0], [0, 3], [1, 0]]), np.zeros(3, int)
    )
    assert readout(np.array([[1, 0], [0, 2], [0, 0]])).tolist() == [0, 1, 0]


def test_small_integer_types_do_not_overflow():
    readout = DenseReadout(np.full((1, 2), 100, np.int8), np.zeros(1, np.int8), np.array([[1], [0]]), np.zeros(2, int))
    assert readout(np.array([[1, 1]], np.int8)).tolist() == [0]


def test_shapes_must_fit():
    eye = np.eye(2, dtype=int)
    with pytest.raises(InvalidMachine, match=r"shapes of a gate do not fit: W1 \(2, 2\), b1 \(3,\)"):
        DenseReadout(eye, np.zeros(3, int), eye, np.zeros(2, int))


def test_an_index_readout_looks_up():
    assert StateReadout(np.array([4, 7]))(np.array([[1], [0]])).tolist() == [7, 4]


def test_an_index_readout_has_no_negative_outputs():
    with pytest.raises(InvalidMachine, match="output holds -1: outputs are numbered from 0"):
        StateReadout(np.array([0, -1]))
