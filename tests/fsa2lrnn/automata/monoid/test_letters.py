"""Groups and commutative machines, with their witnesses."""

import pytest

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import classify


def test_two_states_that_a_letter_merges():
    witness = classify(zoo.resettable_counter(3)).group.witness
    assert (witness.words, witness.states) == ((("0",),), (0, 1, 0))
    assert witness.says == "'0' leads states 0 and 1 both to 0"


def test_two_letters_that_do_not_commute():
    witness = classify(zoo.ab_star()).commutative.witness
    assert (witness.words, witness.states) == ((("a", "b"), ("b", "a")), (0, 0, 2))
    assert witness.says == "from state 0, 'ab' leads to 0 and 'ba' to 2"


@pytest.mark.parametrize("source", ["sum_mod(7)", "length_mod(4)", "cycle_navigation(5)", "group(Z4xZ2)"])
def test_abelian_groups(source):
    c = classify(zoo.from_task(source))
    assert (c.group.value, c.commutative.value) == (True, True)


def test_commuting_letters_that_merge():
    c = classify(MooreMachine([[1, 2, 2], [0, 1, 2]], range(3)))
    assert (c.group.value, c.commutative.value, c.aperiodic.value) == (False, True, True)
    assert c.aperiodic.method == "polynomial: no cycles but loops, since the monoid is R-trivial"


def test_a_long_cycle_breaks_at_its_last_state():
    n = 500
    row = [*range(1, n), 1]
    assert classify(MooreMachine([row], range(n))).group.witness.states == (0, n - 1, 1)
