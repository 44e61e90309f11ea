"""The exact tables: they run the machine, and refuse to be anything but one-hot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.recurrence import DenseReadout, DenseTables, IndexReadout, IndexTables, Recurrence
from verify.strategies import machines, words


def tables(**change):
    parts = {
        "A": np.array([[[[0, 1], [1, 0]]]]),
        "v": np.zeros((1, 1, 2), int),
        "x0": np.array([[1, 0]]),
        "cell": np.array([0]),
        "block_sizes": (2,),
    }
    return DenseTables(**{**parts, **change})


@given(machines(), st.sampled_from(["dense", "index"]), st.data())
def test_tables_run_the_machine(machine, layout, data):
    word = data.draw(words(machine))
    assert compile_recurrence(machine, layout=layout).transduce(word) == machine.transduce(word)


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


def test_parts_that_do_not_fit_together():
    layer, readout = (
        tables(),
        DenseReadout(np.eye(2, dtype=int), np.zeros(2, int), np.eye(2, dtype=int), np.zeros(2, int)),
    )
    assert Recurrence(("a",), (0, 1), layer, readout).layers == (layer,)
    with pytest.raises(InvalidMachine, match="the layer knows 1 letters, the alphabet 2"):
        Recurrence(("a", "b"), (0, 1), layer, readout)
    with pytest.raises(InvalidMachine, match="of different layouts"):
        Recurrence(("a",), (0, 1), layer, IndexReadout(np.array([0, 1])))
    with pytest.raises(InvalidMachine, match="gives 2, but states have 2 entries and there are 1 outputs"):
        Recurrence(("a",), (0,), layer, readout)
    with pytest.raises(InvalidMachine, match=r"the read-out's shapes do not fit: W1 \(2, 2\), b1 \(3,\)"):
        DenseReadout(np.eye(2), np.zeros(3), np.eye(2), np.zeros(2))


def test_tables_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        tables().A[0] = 1
