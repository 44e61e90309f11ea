"""The formal identities against the recurrences that they speak of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.propositions import contradiction
from verify.propositions.contradiction import (
    PAPER,
    PARITY,
    cancels,
    commutator,
    dense,
    diagonal,
    input_independent,
    liquid,
    missing,
)

WORDS = st.dictionaries(st.text("01-", max_size=4), st.integers(-2, 2), max_size=5)


def weights(family, generator):
    """Integer transitions of a family of three dimensions, one a letter."""
    one = generator.integers(-2, 3, (3, 3))
    shifts = {letter: np.diag(generator.integers(-9, 10, 3)) for letter in "01-"}
    return {
        letter: {
            "lti": one,
            "diagonal": np.diag(generator.integers(-2, 3, 3)),
            "dense": generator.integers(-2, 3, (3, 3)),
            "liquid": one + shifts[letter],
        }[family]
        for letter in "01-"
    }


def run(word, A, u, z):
    x = z
    for letter in word:
        x = A[letter] @ x + u[letter]
    return x


@given(WORDS, st.sampled_from(["lti", "diagonal", "dense", "liquid"]))
def test_states_cancel_formally_just_if_they_cancel_for_weights_in_general(words, family):
    commutation = {"lti": input_independent, "diagonal": diagonal, "dense": dense, "liquid": liquid}[family]
    generator, vanish = np.random.default_rng(0), True
    for _ in range(4):
        A = weights(family, generator)
        u, z = {letter: generator.integers(-9, 10, 3) for letter in "01-"}, generator.integers(-9, 10, 3)
        vanish &= not sum((n * run(word, A, u, z) for word, n in words.items()), np.zeros(3, int)).any()
    assert cancels(words, commutation) == vanish


@pytest.mark.parametrize(
    ("words", "families"),
    [(PAPER, {input_independent, diagonal}), (PARITY, {input_independent}), ({"0": 1, "0-": -1}, set())],
)
def test_which_families_the_words_speak_of(words, families):
    assert {f for f in (input_independent, diagonal, dense) if cancels(words, f)} == families


@pytest.mark.parametrize("pair", [("", "-"), ("0", "1"), ("0-", "1-0")])
def test_differences_of_liquid_s4_commute_and_those_of_dense_layers_do_not(pair):
    words = commutator(*pair, "01", "0-")
    assert sum(words.values()) == 0
    assert [cancels(words, f) for f in (liquid, diagonal, input_independent, dense)] == [True, True, True, False]


def test_what_words_lack_is_said():
    assert missing(PAPER, lambda word: word == "1-0") is None
    assert missing(PAPER, len) == (
        "the weighted states leave nothing, not a multiple of one difference: 0-1 ↦ 3, 1-0 ↦ 3, 0-0-1 ↦ 5, 0-1-0 ↦ 5"
    )
    assert "leave {'a': 1}" in missing({"a": 1}, str)


def test_the_equation_in_words():
    assert contradiction.equation(PAPER) == "x_0-1 − x_1-0 − x_0-0-1 + x_0-1-0 = 0"
