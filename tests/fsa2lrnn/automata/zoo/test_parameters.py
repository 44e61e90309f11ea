"""The checks at the zoo's door."""

import numpy as np
import pytest

from fsa2lrnn.automata.zoo.parameters import MAX_TRANSITIONS, at_least, digits, one_of, text, within_budget
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat


def test_whole_numbers_pass_as_int():
    assert at_least(2, "task", "n", np.int64(7)) == 7
    assert type(at_least(2, "task", "n", np.int64(7))) is int


@pytest.mark.parametrize("value", [1, -3, True, 2.0, "5", None])
def test_others_are_named(value):
    with pytest.raises(InvalidMachine, match=rf"task\(n={value!r}\): n must be a whole number of at least 2 \(why\)"):
        at_least(2, "task", "n", value, "why")


def test_choices_and_texts():
    one_of("ab", "task", "kind", "a")
    with pytest.raises(UnsupportedFormat, match=r"task\(kind='c'\): kind must be one of a, b"):
        one_of("ab", "task", "kind", "c")
    assert text("task", "name", "x") == "x"
    with pytest.raises(InvalidMachine, match="name must be text"):
        text("task", "name", 3)


def test_the_budget():
    within_budget("task", MAX_TRANSITIONS, 1)
    with pytest.raises(BudgetExceeded, match="above the limit of 250,000 transitions"):
        within_budget("task", MAX_TRANSITIONS, 2)
    with pytest.raises(BudgetExceeded, match=r"more than 1e\+300 states"):
        within_budget("task", 10**400, 2)


def test_digits():
    assert digits(3) == ("0", "1", "2")
