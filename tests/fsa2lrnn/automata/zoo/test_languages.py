"""Each language against a predicate written from its definition, on all short words."""

import re
from itertools import groupby, product

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine


def all_words(letters: str, longest: int) -> list[str]:
    return ["".join(w) for n in range(longest + 1) for w in product(letters, repeat=n)]


def no_odd_zeros_after_odd_ones(w: str) -> bool:
    runs = [(letter, len(list(run)) % 2) for letter, run in groupby(w)]
    return not any(early == ("1", 1) and late == ("0", 1) for i, early in enumerate(runs) for late in runs[i + 1 :])


TOMITA = {
    1: lambda w: re.fullmatch("1*", w) is not None,
    2: lambda w: re.fullmatch("(10)*", w) is not None,
    3: no_odd_zeros_after_odd_ones,
    4: lambda w: "000" not in w,
    5: lambda w: w.count("0") % 2 == 0 and w.count("1") % 2 == 0,
    6: lambda w: (w.count("0") - w.count("1")) % 3 == 0,
    7: lambda w: re.fullmatch("0*1*0*1*", w) is not None,
}


@pytest.mark.parametrize("i", TOMITA)
def test_tomita_on_all_words_of_up_to_ten_letters(i):
    m = zoo.tomita(i)
    assert [m.accepts(w) for w in all_words("01", 10)] == [TOMITA[i](w) for w in all_words("01", 10)]


def test_tomita_sizes_are_minimal_as_built():
    assert [zoo.tomita(i).n_states for i in range(1, 8)] == [2, 3, 5, 4, 4, 3, 5]
    assert all(zoo.tomita(i).minimise().n_states == zoo.tomita(i).n_states for i in range(1, 8))


@pytest.mark.parametrize("i", [0, 8, True, "1", 2.0, [1]])
def test_tomita_has_seven_languages(i):
    with pytest.raises(InvalidMachine, match="Tomita's languages are numbered 1 to 7"):
        zoo.tomita(i)


def nested(w: str, pairs: list[str], depth: int) -> bool:
    if any(height > depth for height in heights(w, pairs)):
        return False
    shorter = w
    for _ in w:
        for pair in pairs:
            shorter = shorter.replace(pair, "")
    return shorter == ""


def heights(w: str, pairs: list[str]) -> list[int]:
    opening = [pair[0] for pair in pairs]
    return [sum(1 if c in opening else -1 for c in w[: k + 1]) for k in range(len(w))]


@pytest.mark.parametrize(
    ("k", "depth"),
    [(1, 1), (1, 3), (2, 2), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, 1), (2, 3), (3, 2)))],
)
def test_dyck_on_all_short_words(k, depth):
    pairs = ["()", "[]", "{}"][:k]
    m = zoo.dyck(k, depth)
    for w in all_words("".join(pairs), {1: 10, 2: 8, 3: 6}[k]):
        assert m.accepts(w) == nested(w, pairs, depth), w


@pytest.mark.parametrize(
    ("k", "depth", "size"), [(2, 3, 16), (2, 4, 32), (2, 5, 64), (1, 4, 6), (3, 2, 14), (5, 2, 32)]
)
def test_dyck_sizes(k, depth, size):
    m = zoo.dyck(k, depth)
    assert m.n_states == m.minimise().n_states == size


def test_dyck_labels_are_stacks():
    m = zoo.dyck(2, 2)
    assert m.labels[m.run("([")] == ("(", "[")
    assert m.labels[m.run(")")] == "rejected"


def test_dyck_of_many_kinds_spells_its_brackets():
    m = zoo.dyck(5, 2)
    assert m.alphabet == ("(1", ")1", "(2", ")2", "(3", ")3", "(4", ")4", "(5", ")5")
    assert m.accepts("(1 (5 )5 )1")
    assert not m.accepts("(1 (5 )1 )5")


def test_dyck_too_deep_is_refused_at_once():
    with pytest.raises(BudgetExceeded, match=r"dyck\(2, 1000000000\) has about"):
        zoo.dyck(2, 10**9)
    with pytest.raises(BudgetExceeded):
        zoo.dyck(1, 10**9)
    with pytest.raises(BudgetExceeded, match=r"has more than 1e\+300 states and 2,000,000,000 letters"):
        zoo.dyck(10**9, 10**9)
    with pytest.raises(InvalidMachine, match=r"dyck\(k=0\): k must be a whole number of at least 1"):
        zoo.dyck(0, 3)


def test_ab_star():
    m = zoo.ab_star()
    assert all(m.accepts(w) == (re.fullmatch("(ab)*", w) is not None) for w in all_words("ab", 10))
    assert m.n_states == m.minimise().n_states == 3


@pytest.mark.parametrize("pattern", ["a", "ab", "aa", "aba", "abab", "aabaa", "abba"])
def test_contains_on_all_short_words(pattern):
    m = zoo.contains(pattern)
    assert all(m.accepts(w) == (pattern in w) for w in all_words("ab", 9))
    assert m.n_states == m.minimise().n_states == len(pattern) + 1


def test_contains_asks_for_letters_of_the_alphabet():
    with pytest.raises(InvalidMachine, match=r"contains\(pattern='abc'\): 'c' is not among the letters 'ab'"):
        zoo.contains("abc")
    with pytest.raises(InvalidMachine, match="the pattern is empty"):
        zoo.contains("")
    with pytest.raises(InvalidMachine, match="letters must be text: write it in quotes"):
        zoo.contains("10", letters=10)
