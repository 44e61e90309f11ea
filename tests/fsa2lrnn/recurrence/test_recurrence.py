"""The exact form as a whole: it runs the machine, its parts fit together and refuse to be anything but one-hot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.recurrence import DenseReadout, DenseTables, IndexTables, Recurrence, StateReadout
from fsa2lrnn.testing.strategies import machines, words


@given(machines(), st.sampled_from(["dense", "index"]), st.data())
def test_tables_run_the_machine(machine, layout, data):
    word = data.draw(words(machine))
    assert compile_recurrence(machine, layout=layout).transduce(word) == machine.transduce(word)


def test_parts_that_do_not_fit_together():
    one = np.array([[[[0, 1], [1, 0]]]])
    tables = DenseTables(one, np.zeros((1, 1, 2), int), np.array([[1, 0]]), np.array([0]), (2,))
    readout = DenseReadout(np.eye(2, dtype=int), np.zeros(2, int), np.eye(2, dtype=int), np.zeros(2, int))
    assert Recurrence(("a",), (0, 1), tables, readout).layers == (tables,)
    with pytest.raises(InvalidMachine, match="the tables know 1 letters, the alphabet 2"):
        Recurrence(("a", "b"), (0, 1), tables, readout)
    with pytest.raises(InvalidMachine, match="of different layouts"):
        Recurrence(("a",), (0, 1), tables, StateReadout(np.array([0, 1])))
    with pytest.raises(InvalidMachine, match="gives 2, but states have 2 entries and there are 1 outputs"):
        Recurrence(("a",), (0,), tables, readout)


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
    with pytest.raises(ValueError, match="read-only"):
        layer.A[0] = 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.zeros((1, 1, 2, 3), int)}, r"A has shape \(1, 1, 2, 3\), but 1 cells and blocks of sizes \(2,\)"),
        ({"block_sizes": ()}, "A has shape"),
        ({"A": np.zeros((1, 1, 2, 2), int)}, r"head 0 of cell 0 is neither a map .* sum to \[0, 0\] and v to 0"),
        (
            {
                "A": np.eye(2)[None, None].repeat(2, 1),
                "v": np.zeros((1, 2, 2), int),
                "x0": np.array([[1, 0], [1, 0]]),
                "block_sizes": (2, 1),
            },
            "head 1 has entries outside its block of size 1: padding is zero",
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


def test_the_largest_logit_wins_and_the_first_among_equals():
    readout = DenseReadout(
        np.eye(2, dtype=int), np.array([0, -1]), np.array([[1, 0], [0, 3], [1, 0]]), np.zeros(3, int)
    )
    assert readout(np.array([[1, 0], [0, 2], [0, 0]])).tolist() == [0, 1, 0]


def test_shapes_must_fit():
    eye = np.eye(2, dtype=int)
    with pytest.raises(InvalidMachine, match=r"shapes of a gate do not fit: W1 \(2, 2\), b1 \(3,\)"):
        DenseReadout(eye, np.zeros(3, int), eye, np.zeros(2, int))


def test_an_index_readout_looks_up_and_has_no_negative_outputs():
    assert StateReadout(np.array([4, 7]))(np.array([[1], [0]])).tolist() == [7, 4]
    with pytest.raises(InvalidMachine, match="output holds -1: outputs are numbered from 0"):
        StateReadout(np.array([0, -1]))
