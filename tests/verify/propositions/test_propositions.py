"""Propositions of each part on a few cases, and their registry."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import Witness, represent
from verify import propositions
from verify.brute_force import by_T3
from verify.propositions import (
    Effort,
    Outcome,
    Proposition,
    Proved,
    Refuted,
    Tested,
    Undecided,
)
from verify.propositions.contradiction import (
    cancels,
    dense,
    diagonal,
    input_independent,
    liquid,
)
from verify.propositions.families import integer_subtraction, parity_subtraction
from verify.propositions.grids import no_layer_of_a_grid_contradicts
from verify.propositions.registry import refuted, trial


@pytest.mark.parametrize(("beyond", "last"), [("saturate", -1), ("error", "error")])
def test_beyond_the_window(beyond, last):
    assert integer_subtraction(1, beyond).transduce("0-1-1")[-1] == last


def test_strings_that_are_illegal_and_their_completion():
    for word in ("-", "00", "0--", "1-0-1-0-1-1-1-11"):
        assert integer_subtraction(3).transduce(word)[-1] == "error"
    machine, given_ = zoo.subtraction(2), parity_subtraction()
    for length in range(1, 7):
        for word in itertools.product("01", repeat=length):
            text = "-".join(word)
            assert given_.transduce(text) == machine.transduce(text)
    assert given_.transduce("00") != machine.transduce("00")


TWO = Effort("two", examples=1, exhaustive=2)


def test_wrong_verdicts_and_witnesses_are_named():
    def decide(machine, family):
        impossible = represent(zoo.subtraction(3), family)
        return impossible if machine.delta.tolist() == [[1, 0], [1, 0]] else by_T3(machine, family)

    answer = no_layer_of_a_grid_contradicts(TWO, decide)
    assert isinstance(answer, Refuted)
    assert answer.data == {"delta": [[1, 0], [1, 0]], "family": "lti"}

    def decide(machine, family):
        verdict = by_T3(machine, family)
        if not isinstance(verdict, Witness) or family != "diagonal[0,1]" or not verdict.form:
            return verdict
        return replace(verdict, form=tuple(replace(channel, shifts=channel.shifts[::-1]) for channel in verdict.form))

    answer = no_layer_of_a_grid_contradicts(TWO, decide)
    assert isinstance(answer, Refuted)
    assert answer.witness.startswith("the witness of diagonal[0,1] for ")


SMALL = Effort("small", examples=40, exhaustive=1)


def proposition(answer, expects):
    return Proposition("p", "Statement.", "none", "here", lambda effort: answer, expects)  # noqa: ARG005


@pytest.mark.parametrize("answer", [Proved("by hand", 1), Tested("cases", 3, 0), refuted("no"), Undecided("1 s")])
@pytest.mark.parametrize("expects", [Proved, Tested, Refuted, Undecided])
def test_an_answer_is_expected_if_it_is_of_the_kind_named(answer, expects):
    (outcome,) = propositions.run([proposition(answer, expects)])
    assert outcome == Outcome(outcome.proposition, answer)
    assert outcome.expected == (type(answer) is expects)


def test_trials_count_repeat_and_give_the_smallest_case():
    seen = []

    def fault(n):
        seen.append(n)

    first = trial("integers", st.integers(), fault, SMALL)
    before = list(seen)
    seen.clear()
    assert trial("integers", st.integers(), fault, SMALL) == first == Tested("integers", 40, 0)
    assert seen == before
    seen.clear()
    assert trial("integers", st.integers(), fault, Effort("other", 40, 1, seed=1)).seed == 1
    assert seen != before
    assert trial("a bit", st.booleans(), lambda _: None, SMALL) == Tested("a bit", 2, 0)
    answer = trial("lists", st.lists(st.integers(0, 99)), lambda xs: f"sum {sum(xs)}" if sum(xs) > 10 else None, SMALL)
    assert answer == refuted("sum 11", case="[11]")
    with pytest.raises(ZeroDivisionError):
        trial("integers", st.integers(), lambda n: None if 1 / n else "", SMALL)


WORDS = st.dictionaries(st.text("01-", max_size=4), st.integers(-2, 2), max_size=5)


def weights(family, generator):
    """Integer transitions of a family of three dimensions, one a letter."""
    one = generator.integers(-2, 3, (3, 3))
    shifts = {letter: np.diag(generator.integers(-9, 10, 3)) for letter in "01-"}
    return {
        letter: {
            "lti": one, "diagonal": np.diag(generator.integers(-2, 3, 3)), "dense": generator.integers(-2, 3, (3, 3)),
            "liquid": one + shifts[letter],
        }[family]
        for letter in "01-"
    }  # fmt: skip


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
