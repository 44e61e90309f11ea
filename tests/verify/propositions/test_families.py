"""The machines made for the propositions compute what they say."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from verify.propositions.families import integer_subtraction, parity_subtraction

digits = st.lists(st.sampled_from("01"), min_size=1, max_size=12)


def value(word):
    first, *others = map(int, word.split("-"))
    return first - sum(others)


@given(digits)
def test_a_window_that_is_large_enough_subtracts_as_python_does(word):
    text = "-".join(word)
    for beyond in ("saturate", "error"):
        assert integer_subtraction(len(word), beyond).transduce(text)[-1] == value(text)


@pytest.mark.parametrize(("beyond", "last"), [("saturate", -1), ("error", "error")])
def test_beyond_the_window(beyond, last):
    assert integer_subtraction(1, beyond).transduce("0-1-1")[-1] == last


def test_illegal_strings_are_errors():
    for word in ("-", "00", "0--", "1-0-1-0-1-1-1-11"):
        assert integer_subtraction(3).transduce(word)[-1] == "error"


def test_the_completion_agrees_with_subtraction_modulo_2_on_legal_strings_and_not_beyond():
    machine, given_ = zoo.subtraction(2), parity_subtraction()
    for length in range(1, 7):
        for word in itertools.product("01", repeat=length):
            text = "-".join(word)
            assert given_.transduce(text) == machine.transduce(text)
    assert given_.transduce("00") != machine.transduce("00")
