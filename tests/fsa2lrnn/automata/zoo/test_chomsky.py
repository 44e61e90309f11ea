"""Delétang et al.'s tasks by their definitions, and their relation to the paper's."""

from itertools import product

import pytest

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.errors import InvalidMachine


def binary_words(letters: str, longest: int) -> list[str]:
    return ["".join(w) for n in range(longest + 1) for w in product(letters, repeat=n)]


def test_parity_counts_ones():
    m = zoo.parity()
    assert all(m.accepts(w) == (w.count("1") % 2 == 1) for w in binary_words("01", 10))
    assert equivalent(m, zoo.sum_mod(2)) is None
    assert m.is_acceptor


def test_even_pairs_counts_switches():
    m = zoo.even_pairs()
    for w in binary_words("ab", 10):
        switches = sum(w[k : k + 2] in ("ab", "ba") for k in range(len(w)))
        assert m.accepts(w) == (switches % 2 == 0), w


def test_even_pairs_is_even_pair_2_but_for_the_empty_word():
    ours = zoo.even_pair(2)
    renamed = MooreMachine(ours.delta, [bool(y) for y in ours.outputs], ours.start, "ab")
    assert equivalent(zoo.even_pairs(), renamed) == ()
    as_there = [True, *map(bool, ours.outputs[1:])]
    assert equivalent(zoo.even_pairs(), MooreMachine(ours.delta, as_there, ours.start, "ab")) is None


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_cycle_navigation_walks_round(n):
    m = zoo.cycle_navigation(n)
    for w in map("".join, product("0+-", repeat=7)):
        assert m.outputs[m.run(w)] == (w.count("+") - w.count("-")) % n
    assert m.n_states == m.minimise().n_states == n


def test_cycle_navigation_is_part_of_sum():
    whole = zoo.sum_mod(5)
    part = MooreMachine(whole.delta[[0, 1, 4]], whole.outputs, alphabet="0+-")
    assert equivalent(part, zoo.cycle_navigation()) is None


def test_a_cycle_of_one_place_is_refused():
    with pytest.raises(InvalidMachine, match=r"cycle_navigation\(n=1\): n must be a whole number of at least 2"):
        zoo.cycle_navigation(1)
