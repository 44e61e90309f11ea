"""The exact form as a whole: it runs the machine, and its parts fit together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.recurrence import DenseReadout, DenseTables, Recurrence, StateReadout
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
