"""The tables of one layer refuse to be anything but one-hot."""

import numpy as np
import pytest

from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.recurrence import DenseTables, IndexTables


def tables(**change):
    parts = {
        "A": np.array([[[[0, 1], [1, 0]]]]),
        "v": np.zeros((1, 1, 2), int),
        "x0": np.array([[1, 0]]),
        "cell": np.array([0]),
        "block_sizes": (2,),
    }
    return DenseTables(**{**parts, **change})


def test_a_reset_is_allowed_beside_maps():
    layer = tables(A=np.zeros((1, 1, 2, 2), int), v=np.array([[[0, 1]]]))
    assert layer.step(np.array([[1, 0]])).tolist() == [[[0, 1]]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.zeros((1, 1, 2, 3), int)}, r"A has shape \(1, 1, 2, 3\), but 1 cells and blocks of sizes \(2,\)"),
        ({"block_sizes": ()}, "A has shape"),
        (
            {"A": np.zeros((1, 1, 2, 2), int)},
            r"head 0 of cell 0 is neither a map .* its columns sum to \[0, 0\] and v to 0",
        ),
        ({"A": np.array([[[[1, 1], [1, 0]]]])}, r"its columns sum to \[2, 1\]"),
        ({"A": np.array([[[[2, 1], [-1, 0]]]])}, "neither a map"),
        ({"v": np.array([[[1, 0]]])}, r"its columns sum to \[1, 1\] and v to 1"),
        ({"x0": np.array([[1, 1]])}, r"x0 of head 0 is \[1, 1\]: it must be one-hot"),
        ({"cell": np.array([1])}, r"cell = \[1\].*: give each letter one of the cells 0\.\.0"),
        ({"cell": np.array([], int)}, "give each letter one of the cells"),
    ],
)
def test_a_broken_invariant_is_named(change, message):
    with pytest.raises(InvalidMachine, match=message):
        tables(**change)


def test_padding_is_zero():
    A, x0 = np.zeros((1, 2, 2, 2), int), np.array([[1, 0], [1, 0]])
    A[0, 0] = np.eye(2)
    A[0, 1] = np.eye(2)
    with pytest.raises(InvalidMachine, match="head 1 has entries outside its block of size 1: padding is zero"):
        DenseTables(A, np.zeros((1, 2, 2), int), x0, np.array([0]), (2, 1))


@pytest.mark.parametrize(
    ("table", "start", "message"),
    [
        ([[0, 2]], 0, r"entries outside 0\.\.1"),
        ([[0, -1]], 0, "entries outside"),
        ([[0, 1]], 2, "start = 2, but the block"),
    ],
)
def test_index_tables_check_themselves(table, start, message):
    with pytest.raises(InvalidMachine, match=message):
        IndexTables(np.array(table), start, np.array([0]))


def test_tables_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        tables().A[0] = 1
