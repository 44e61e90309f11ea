"""Dot-depth one and local threshold testability: identities by brute force, inclusions, symmetries and limits."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata.monoid import classify, factors
from fsa2lrnn.testing.strategies import dfas

NAMES = ("threshold_testable", "dot_depth_one")


def then(f, g):
    return tuple(g[x] for x in f)


def idempotent_power(f):
    power = f
    while then(power, power) != power:
        power = then(power, f)
    return power


def by_identities(brute) -> tuple[bool, bool]:
    """Return whether a semigroup satisfies the identities of Thérien and Weiss, and that of Knast."""
    idempotents = [e for e in brute.semigroup if then(e, e) == e]
    threshold, knast = brute.aperiodic(), True
    for e, f in product(idempotents, repeat=2):
        forth, back = ({then(then(g, s), h) for s in brute.semigroup} for g, h in ((e, f), (f, e)))
        threshold = threshold and all(
            then(then(x, y), z) == then(then(z, y), x) for x, y, z in product(forth, back, forth)
        )
        first = {(idempotent_power(then(p, q)), p) for p, q in product(forth, back)}
        last = {(idempotent_power(then(r, s)), s) for r, s in product(forth, back)}
        knast = knast and all(
            then(then(then(one, p), s), other) == then(one, other) for (one, p), (other, s) in product(first, last)
        )
    return threshold, knast


def check_witness(machine: MooreMachine, witness) -> None:
    """Check the assertion of a witness on every word and state."""

    def run(word, *states):
        for letter in word:
            states = [machine.step(q, letter) for q in states]
        return tuple(states)

    words, states = witness.words, witness.states
    assert words[0]
    assert words[1]
    if len(words) == 6:
        (u, v, p, q, r, s), (a, d1, d, b, h1, h) = words, states
        assert d != d1
        assert run(u, a, d1, d) == (a, d1, d)
        assert run(v, b, h1, h) == (b, h1, h)
        assert run(p, a) + run(q, b) == (b, a)
        assert run(r, a, d1, d) == (h1, h1, h)
        assert run(s, b, h1, h) == (d, d1, d)
    else:
        (u, v, x, y, z), (a, b, c, d, b1, c1, d1) = words, states
        assert d != d1
        assert run(u, a, c, c1) == (a, c, c1)
        assert run(v, b, d, b1, d1) == (b, d, b1, d1)
        assert run(x, a, c1) + run(y, b, b1) + run(z, a, c) == (b, d1, c, c1, b1, d)


@st.composite
def ordered_machines(draw) -> MooreMachine:
    """Machines whose letters lead on or keep the order of states, but for one transition."""
    n = draw(st.integers(3, 6))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        row = [draw(st.integers(q, n - 1)) if draw(st.booleans()) else q for q in range(n)]
        rows.append(sorted(row) if draw(st.booleans()) else row)
    rows[0][draw(st.integers(0, n - 1))] = draw(st.integers(0, n - 1))
    return MooreMachine(rows, range(n))


@settings(max_examples=100, deadline=None)
@given(ordered_machines() | dfas(max_states=5, max_letters=2))
def test_answers_by_the_identities_and_refutations_by_their_witnesses(brute, machine):
    by_definition = brute(machine)
    if len(by_definition.semigroup) > 40:
        return
    facts = classify(machine)
    assert tuple(getattr(facts, name).value for name in NAMES) == by_identities(by_definition)
    for name in (*NAMES, *(f"tier_{name}" for name in NAMES)):
        if getattr(facts, name).value is False:
            check_witness(facts.machine, getattr(facts, name).witness)


def reverse(machine: MooreMachine) -> MooreMachine:
    """Return the automaton of the reversed language, by subsets."""
    start = frozenset(np.flatnonzero(np.array(machine.outputs, bool)).tolist())
    states, delta = [start], []
    for at in states:
        row = [frozenset(q for q in range(machine.n_states) if letters[q] in at) for letters in machine.delta.tolist()]
        states += [to for to in dict.fromkeys(row) if to not in states]
        delta.append(row)
    numbers = {at: i for i, at in enumerate(states)}
    table = [[numbers[row[a]] for row in delta] for a in range(len(machine.alphabet))]
    return MooreMachine(table, [machine.start in at for at in states], 0, machine.alphabet)


@pytest.mark.parametrize(
    ("regex", "alphabet", "expected"),
    [
        (".*aa.*", "abc", "locally_testable threshold_testable dot_depth_one"),
        ("[^a]*a[^a]*", "abc", "threshold_testable dot_depth_one"),  # exactly one a
        ("[^a]*a[^a]*a[^a]*a[^a]*", "abc", "threshold_testable dot_depth_one"),
        (".*aa.*b.*", "abc", "dot_depth_one"),  # a factor, then a letter
        ("(a|ba*b)*", "ab", ""),  # an even number of b
        ("(a(ab)*b)*", "ab", ""),  # depth at most two: star-free, of dot-depth two
    ],
)
def test_known_languages(regex, alphabet, expected):
    facts = classify(MooreMachine.from_source(f"regex:{regex}", alphabet=alphabet))
    names = ("locally_testable", *NAMES)
    assert {name for name in names if getattr(facts, name).value} == set(expected.split())


def test_a_letter_off_the_tier():
    """Exactly one factor aa on the tier of a and b."""
    facts = classify(MooreMachine.from_source("regex:[bc]*(a[c]*b[bc]*)*a[c]*a[c]*(b[bc]*(ac*)?)*", alphabet="abc"))
    assert set(facts.tier) == {"a", "b"}
    assert (facts.threshold_testable.value, facts.tier_threshold_testable.value) == (False, True)


def test_limits_are_named_and_large_machines_refuted_by_short_words(monkeypatch):
    once = MooreMachine.from_source("regex:[^a]*a[^a]*", alphabet="abc")
    monkeypatch.setattr(factors, "MAX_JOINS", 1)
    assert "more than 1 pairs of paths" in classify(once).threshold_testable.method
    monkeypatch.setattr(factors, "MAX_NODES", 50)
    assert (
        classify(once).threshold_testable.method
        == "undecided: 27 triples of 3 states with 2 letters are too many to search"
    )
    a_before_b = MooreMachine.from_source("regex:[^a]*a[^b]*b.*", alphabet="abc")
    fact = classify(a_before_b).threshold_testable
    assert (fact.value, fact.method) == (False, "by words of at most two letters")
    check_witness(classify(a_before_b).machine, fact.witness)
