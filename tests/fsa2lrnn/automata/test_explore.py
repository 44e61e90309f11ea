"""Machines from a step function."""

import pytest

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import explore, trim
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine


def test_states_are_numbered_breadth_first_and_labelled_by_themselves():
    m = explore("ab", "", lambda q, a: (q + a)[-2:], lambda q: len(q))
    assert m.labels == ("", "a", "b", "aa", "ab", "ba", "bb")
    assert m.outputs == (0, 1, 1, 2, 2, 2, 2)
    assert trim(m) == m


def test_the_step_function_is_the_table():
    def step(q: tuple[int, int], a: int) -> tuple[int, int]:
        return (q[0] + a) % 3, (q[1] * a + 1) % 4

    m = explore((0, 1, 2), (0, 0), step, sum)
    for q, label in enumerate(m.labels):
        assert m.outputs[q] == sum(label)
        assert [m.labels[m.step(q, a)] for a in m.alphabet] == [step(label, a) for a in m.alphabet]


def test_letters_may_be_a_generator():
    assert explore((a for a in "ab"), 0, lambda q, _: q, lambda _: True) == MooreMachine([[0], [0]], [True], 0, "ab")


def test_an_infinite_task_ends_with_a_message():
    with pytest.raises(BudgetExceeded) as error:
        explore("a", 0, lambda q, _: q + 1, lambda q: q, max_states=1_000)
    assert str(error.value) == (
        "more than 1,000 states are reachable (the last: 1000): is the task finite-state? raise max_states if it is"
    )


def test_the_limit_is_the_number_of_states():
    assert explore("a", 0, lambda q, _: (q + 1) % 10, lambda q: q, max_states=10).n_states == 10


def test_an_empty_alphabet_is_refused():
    with pytest.raises(InvalidMachine, match="the alphabet is empty"):
        explore("", 0, lambda q, _: q, lambda q: q)
