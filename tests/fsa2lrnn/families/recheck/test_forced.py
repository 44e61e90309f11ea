"""Sums of equations between words: a changed one is refused unless it still adds up."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.families.identities import FORCED
from tests.fsa2lrnn.families.certificates import certificates
from tests.fsa2lrnn.families.conftest import CASES, accepted, changed, leaves, parent, rejected


@given(certificates("impossible"), st.data())
def test_a_changed_coefficient_is_refused(certificate, data):
    i = data.draw(st.integers(0, len(certificate["terms"]) - 1))
    by = data.draw(st.fractions(-3, 3, max_denominator=5).filter(bool))
    broken = changed(certificate, ("terms", i, "coefficient"), lambda text: str(Fraction(text) + by))
    rejected(broken, "the terms do not add up")


@given(certificates("impossible"), st.data())
def test_a_dropped_term_is_refused(certificate, data):
    del certificate["terms"][data.draw(st.integers(0, len(certificate["terms"]) - 1))]
    rejected(certificate, "the terms do not add up")


@given(certificates("impossible"), st.data())
def test_other_states_are_refused(certificate, data):
    n, before = len(certificate["machine"]["outputs"]), tuple(certificate["states"])
    states = data.draw(st.tuples(st.integers(-1, n), st.integers(-1, n)).filter(lambda pair: pair != before))
    certificate["states"] = list(states)
    assert not accepted(certificate)


@given(certificates("impossible"), st.data())
def test_another_separator_is_refused_unless_it_separates(certificate, data):
    delta, outputs = certificate["machine"]["delta"], certificate["machine"]["outputs"]
    word = data.draw(st.lists(st.integers(0, len(delta) - 1), max_size=4))
    certificate["separator"] = [[a, 1] for a in word]
    p, q = certificate["states"]
    for a in word:
        p, q = delta[a][p], delta[a][q]
    assert accepted(certificate) == (outputs[p] != outputs[q])


@given(certificates("impossible"), st.data())
def test_a_changed_word_or_state_of_a_term_is_refused_unless_the_sum_stays(certificate, data):
    delta = certificate["machine"]["delta"]
    places = [path for path in leaves(certificate) if path[0] == "terms" and "coefficient" not in path]
    path = data.draw(st.sampled_from([path for path in places if isinstance(parent(certificate, path)[path[-1]], int)]))
    is_state = path[-1] in ("from", "to")
    limit = len(delta[0]) if is_state else len(delta) if path[-1] == 0 else 6
    broken = changed(certificate, path, lambda _: data.draw(st.integers(0, limit - 1)))
    assert accepted(broken) == (is_sum(broken) and all(agree(broken, term["words"]) for term in broken["terms"]))


def is_sum(certificate):
    """Whether the terms add up, by matrices over the fractions."""
    delta = certificate["machine"]["delta"]
    n = len(delta[0])
    M = [np.array([[Fraction(int(row[q] == p)) for q in range(n)] for p in range(n)]) for row in delta]

    def matrix(word):
        product = np.array([[Fraction(int(p == q)) for q in range(n)] for p in range(n)])
        for a, repetitions in word:
            for _ in range(repetitions):
                product = M[a] @ product
        return product

    unit = np.eye(n, dtype=int).astype(object)
    total = np.zeros(n, dtype=object)
    for term in certificate["terms"]:
        u, other = term["words"]
        difference = (matrix(u) - matrix(other)) @ (unit[term["from"]] - unit[term["to"]])
        total = total + Fraction(term["coefficient"]) * (matrix(term["then"]) @ difference)
    p, q = certificate["states"]
    return (total == unit[p] - unit[q]).all()


def agree(certificate, words):
    """Whether the two words have equal linear parts in the family, one letter and a power of it in the other forms."""
    form, delta = FORCED[certificate["family"]], certificate["machine"]["delta"]
    u, other = ([a for a, repetitions in word for _ in range(repetitions)] for word in words)
    if len(u) == len(other) if form.letters == "input-independent" else sorted(u) == sorted(other):
        return True
    if form.eigenvalues is None or len(set(u)) != 1 or len(other) != 1 or u[0] != other[0]:
        return False
    if form.eigenvalues != "complex":
        return len(u) == {"[0,1]": 2, "[-1,1]": 3}[form.eigenvalues]
    row, lengths = delta[u[0]], []
    for q in range(len(row)):
        p, k = row[q], 1
        while p != q and k <= len(row):
            p, k = row[p], k + 1
        lengths += [k] if p == q else []
    return (len(u) - 1) % math.lcm(*lengths) == 0


@pytest.mark.parametrize(
    "words", [[[[1, 3]], [[1, 2]]], [[[1, 2]], []], [[[0, 1], [1, 1]], [[1, 1]]], [[[0, 2]], [[1, 1]]]]
)
def test_powers_are_those_of_one_letter_and_no_others(words):
    certificate = changed(CASES["parity diagonal[0,1]"], ("terms", 0, "words"), lambda _: words)
    rejected(certificate, r"may differ in the family diagonal\[0,1\]")


def test_a_letter_may_be_written_in_several_runs():
    certificate = changed(CASES["parity diagonal[0,1]"], ("terms", 0, "words", 0), lambda _: [[1, 1], [0, 0], [1, 1]])
    assert accepted(certificate)
