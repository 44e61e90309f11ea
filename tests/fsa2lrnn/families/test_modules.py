"""The module of the functions of the state, by the definition."""

import numpy as np
from flint import fmpq_mat
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import classes, functions_module, quotient, restricted, reverse, spin, words_of
from fsa2lrnn.testing.strategies import machines


def as_row(values):
    return fmpq_mat(1, len(values) - 1, [int(v - values[0]) for v in values[1:]])


@given(machines(6, 2).filter(lambda m: m.n_states > 1), st.data())
def test_letters_act_by_composition(machine, data):
    n = machine.n_states
    f = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)))
    module = functions_module(machine.delta)
    for step, letter in zip(machine.delta, module.letters, strict=True):
        assert as_row(f) * letter == as_row(f[step])
    word = tuple(data.draw(st.lists(st.integers(0, len(machine.delta) - 1), max_size=4)))
    moved = f
    for a in word:
        moved = moved[machine.delta[a]]
    assert as_row(f) * module.word(word) == as_row(moved)
    element = ((2, word), (-3, ()))
    assert module.dual.element(reverse(element)) == module.element(element).transpose()
    assert module.nullity(element) >= module.dimension - linear.rank(module.element(element))


@given(machines(6, 2).filter(lambda m: m.n_states > 1), st.data())
def test_what_a_function_generates_and_the_quotient_by_it(machine, data):
    n, module = machine.n_states, functions_module(machine.delta)
    f = as_row(np.array(data.draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n))))
    spun = spin(module, f)
    for word, row in zip(words_of(spun.path), spun.rows.tolist(), strict=True):
        assert (f * module.word(word)).tolist()[0] == row
    letters = restricted(module, spun.rows)
    assert letters is not None
    assert all(b * spun.rows == spun.rows * a for a, b in zip(module.letters, letters, strict=True))
    below = quotient(module, linear.row_space(spun.rows))
    assert not any((spun.rows * below.down).entries())
    assert below.lift * below.down == linear.identity(below.module.dimension)
    for a, b in zip(module.letters, below.module.letters, strict=True):
        assert a * below.down == below.down * b


def test_rows_that_are_no_submodule_are_found_out():
    module = functions_module(zoo.cerny(4).delta)
    assert restricted(module, fmpq_mat(1, 3, [1, 0, 0])) is None


def test_states_are_alike_where_functions_agree():
    assert classes(fmpq_mat(2, 3, [1, 0, 1, 0, 0, 0])) == [0, 1, 0, 1]
    assert classes(fmpq_mat(0, 2)) == [0, 0, 0]
