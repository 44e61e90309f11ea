"""The checker's own linear algebra, beside numpy's and flint's."""

import numpy as np
from flint import fmpq, fmpq_mat
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.families.recheck.machine import CheckedMachine
from fsa2lrnn.families.recheck.modules import _transposed, applied, rank_of, spun, state_functions, times
from fsa2lrnn.testing.strategies import machines

small = st.integers(-2, 2)


def exactly(elements, n):
    return st.lists(elements, min_size=n, max_size=n)


square = st.integers(1, 5).map(lambda d: exactly(exactly(small, d), d))
tables = square.flatmap(lambda table: st.integers(1, 2).flatmap(lambda n: exactly(table, n)))


def rows_of(table):
    return [{j: x for j, x in enumerate(row) if x} for row in table]


@given(tables, st.data())
def test_words_act_from_the_right_one_letter_after_the_other(matrices, data):
    letters, d = [rows_of(table) for table in matrices], len(matrices[0])
    row = data.draw(exactly(small, d))
    word = data.draw(st.lists(st.integers(0, len(letters) - 1), max_size=4))
    expected = np.array(row)
    for a in word:
        expected = expected @ np.array(matrices[a])
    assert applied([(2, word), (-1, [])], row, letters) == (2 * expected - row).tolist()
    assert times(row, _transposed(letters[0])) == (np.array(matrices[0]) @ row).tolist()


@given(tables)
def test_ranks_are_those_over_the_rationals(matrices):
    matrix = fmpq_mat([[fmpq(x, 3) for x in row] for row in matrices[0]])
    assert rank_of(matrices[0], len(matrices[0])) == matrix.rank()


@given(tables, st.data())
def test_what_a_row_generates_has_the_dimension_of_its_images(matrices, data):
    d = len(matrices[0])
    row = data.draw(exactly(small, d))
    images, whole = [np.array(row)], np.array([row])
    for _ in range(d):
        images = [image @ np.array(matrix) for image in images for matrix in matrices]
        whole = np.vstack([whole, *images])
        images = list(np.unique(images, axis=0))
    assert spun([row], [rows_of(table) for table in matrices]) == fmpq_mat(whole.astype(object).tolist()).rank()


@given(machines(5, 2), st.data())
def test_functions_of_the_state_move_as_the_letters_do(machine, data):
    f = data.draw(exactly(small, machine.n_states))
    letters = state_functions(CheckedMachine(machine.delta.tolist(), list(machine.outputs)))
    for letter, step in zip(letters, machine.delta, strict=True):
        moved = [f[q] for q in step]
        assert times([x - f[0] for x in f[1:]], letter) == [x - moved[0] for x in moved[1:]]


def test_all_functions_of_a_cycle_but_constants_are_generated_by_one():
    machine = zoo.sum_mod(5)
    letters = state_functions(CheckedMachine(machine.delta.tolist(), list(machine.outputs)))
    assert spun([[1, 0, 0, 0]], letters) == 4
