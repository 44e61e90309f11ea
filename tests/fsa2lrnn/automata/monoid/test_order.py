"""R- and J-triviality and definiteness on examples whose answers are known; test_classification has the definitions."""

import numpy as np
import pytest

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import classify


def test_a_cycle_of_states():
    witness = classify(zoo.elevator(3)).r_trivial.witness
    assert (witness.words, witness.states) == ((("u", "d"),), (0, 1, 0))


def test_two_letters_that_do_not_run_together():
    """b comes before c, or else: after either the other is too late."""
    c = classify(MooreMachine.from_source("regex:a*b.*", alphabet="abc"))
    assert (c.r_trivial.value, c.j_trivial.value) == (True, False)
    assert c.j_trivial.witness.words == (tuple("bbc"), tuple("cbc"))
    assert (c.j_trivial.witness.states[0], {*c.j_trivial.witness.states[1:]}) == (0, {1, 2})
    assert c.l_trivial.witness == c.j_trivial.witness


@pytest.mark.parametrize("word", ["a", "ab", "aba", "aabbab"])
def test_containing_a_subword_is_piecewise_testable(word):
    source = "regex:.*" + "".join(f"{a}.*" for a in word)
    assert classify(MooreMachine.from_source(source, alphabet="abc")).j_trivial.value is True


def test_containing_a_factor_is_not():
    assert classify(zoo.contains("ab", letters="abc")).j_trivial.value is False
    assert classify(zoo.contains("ab", letters="ab")).j_trivial.value is True  # over two letters ab is a subword


@pytest.mark.parametrize(("n", "base", "k"), [(8, 2, 3), (9, 3, 2), (27, 3, 3), (4, 4, 1)])
def test_remainders_modulo_powers_of_the_base_are_definite(n, base, k):
    c = classify(zoo.remainder(n, base))
    assert (c.definite.value, c.definite_order) == (True, k)


def test_what_is_kept_apart_for_ever():
    c = classify(zoo.flip_flop())
    assert (c.definite.value, c.definite_order) == (False, None)
    assert c.definite.witness.words == ((".",),)
    assert c.definite.witness.says == "'.', however often, keeps state 0 at 0 and state 1 at 1"


def test_first_letters_that_decide():
    c = classify(MooreMachine.from_source("regex:(a|b)(ab|ba).*", alphabet="ab"))
    assert (c.reverse_definite.value, c.reverse_definite_order) == (True, 3)
    late = classify(MooreMachine.from_source("regex:a*b.*", alphabet="ab"))
    assert late.reverse_definite.witness.words == (("a",), ("b",))


@pytest.mark.parametrize("n", [2, 50, 1_000])
def test_long_chains(n):
    """A counter that stops at its end: both ends of the word decide, after n − 1 letters."""
    c = classify(MooreMachine([np.minimum(np.arange(n) + 1, n - 1)], range(n)))
    assert (c.definite_order, c.reverse_definite_order) == (n - 1, n - 1)
    assert (c.r_trivial.value, c.j_trivial.value, c.locally_testable.value) == (True, True, True)
