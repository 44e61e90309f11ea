"""Counters against arithmetic."""

import random

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import InvalidMachine

LONG = 400


def random_word(letters: str, seed: int) -> str:
    return "".join(random.Random(seed).choices(letters, k=LONG))


@pytest.mark.parametrize("n", [2, 3, 7])
def test_length_mod(n):
    assert zoo.length_mod(n).transduce(random_word("ab", n)) == [k % n for k in range(1, LONG + 1)]
    assert zoo.length_mod(n, letters="xyz").alphabet == ("x", "y", "z")


@pytest.mark.parametrize("n", [2, 3, 7])
def test_count_mod(n):
    w = random_word("abc", n)
    assert zoo.count_mod(n, "b", "abc").transduce(w) == [w[: k + 1].count("b") % n for k in range(LONG)]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_resettable_counter(n):
    w = random_word("+++++++0", n)
    since_reset = [len(w[: k + 1].rpartition("0")[2]) for k in range(LONG)]
    assert zoo.resettable_counter(n).transduce(w) == [count % n for count in since_reset]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_elevator_stays_between_the_floors(n):
    floor = 0
    w = random_word("ud", n)
    for letter, output in zip(w, zoo.elevator(n).transduce(w), strict=True):
        floor = sorted((0, floor + (1 if letter == "u" else -1), n - 1))[1]
        assert output == floor


@pytest.mark.parametrize(("n", "base"), [(2, 2), (3, 2), (6, 2), (8, 2), (7, 10), (9, 3)])
def test_remainder(n, base):
    w = random_word("0123456789"[:base], n)
    assert zoo.remainder(n, base).transduce(w) == [int(w[: k + 1], base) % n for k in range(LONG)]


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("task", ["length_mod", "count_mod", "resettable_counter", "elevator", "remainder"])
def test_counters_are_minimal_as_built(task, n):
    m = getattr(zoo, task)(n)
    assert m.minimise() == m
    assert m.n_states == n


def test_bad_parameters_are_named():
    with pytest.raises(InvalidMachine, match=r"elevator\(n=1\): n must be a whole number of at least 2"):
        zoo.elevator(1)
    with pytest.raises(InvalidMachine, match=r"count_mod\(letter='c'\): it must be one of the letters 'ab'"):
        zoo.count_mod(3, letter="c")
    with pytest.raises(InvalidMachine, match="letter must be text"):
        zoo.count_mod(3, letter=1)
    with pytest.raises(InvalidMachine, match="letter 'a' stands twice in the alphabet"):
        zoo.length_mod(3, letters="aa")
    with pytest.raises(InvalidMachine, match=r"remainder\(base=1\): base must be"):
        zoo.remainder(3, base=1)
