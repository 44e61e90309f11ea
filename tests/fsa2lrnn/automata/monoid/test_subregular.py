"""Strictly local, strictly piecewise and tier-based languages, against words and against witnesses."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.automata.table_kernels import coaccessible
from fsa2lrnn.testing.strategies import dfas


def after(machine: MooreMachine, word, q: int) -> int:
    for letter in word:
        q = machine.step(q, letter)
    return q


def live_ends(machine: MooreMachine, length: int) -> int:
    """Return the largest number of live states that a word of a length leads to."""
    live = coaccessible(machine.delta, np.array(machine.outputs, bool))
    ends = [
        {q for p in range(machine.n_states) if live[q := after(machine, word, p)]}
        for word in product(machine.alphabet, repeat=length)
    ]
    return max(map(len, ends))


@settings(max_examples=150, deadline=None)
@given(dfas(max_states=4, max_letters=2))
def test_answers_by_words_and_refutations_by_their_witnesses(machine):
    facts = classify(machine)
    minimal = facts.machine
    if facts.strictly_local.value:
        k = facts.strictly_local_order
        assert live_ends(minimal, k - 1) <= 1
        assert k == 1 or live_ends(minimal, k - 2) > 1
    else:
        (word,), states = facts.strictly_local.witness.words, facts.strictly_local.witness.states
        assert word
        assert len(set(states)) == 2
        assert all(after(minimal, word, q) == q for q in states)
        assert coaccessible(minimal.delta, np.array(minimal.outputs, bool))[list(states)].all()
    if facts.strictly_piecewise.value:
        for word in product(minimal.alphabet, repeat=5):
            shorter = [word[:i] + word[i + 1 :] for i in range(5)]
            assert not minimal.accepts(word) or all(map(minimal.accepts, shorter))
    else:
        (letter, word), (q, p) = facts.strictly_piecewise.witness.words, facts.strictly_piecewise.witness.states
        assert after(minimal, letter, q) == p
        assert minimal.outputs[after(minimal, word, p)]
        assert not minimal.outputs[after(minimal, word, q)]
    for name in ("strictly_local", "locally_testable"):
        assert getattr(facts, f"tier_{name}").value or not getattr(facts, name).value


@pytest.mark.parametrize(
    ("regex", "alphabet", "expected"),
    [
        ("(ab)*", "ab", "strictly_local tier_strictly_local locally_testable"),
        ("(c*ac*b)*c*", "abc", "tier_strictly_local"),  # (ab)* on the tier of a and b
        ("b*(ab*)?", "ab", "strictly_piecewise tier_strictly_local"),  # at most one a
        ("[abc]*a[abc]*b[abc]*", "abc", ""),  # a before b
        ("[abc]*aa[abc]*", "abc", "locally_testable"),
    ],
)
def test_known_languages(regex, alphabet, expected):
    facts = classify(MooreMachine.from_source(f"regex:{regex}", alphabet=alphabet))
    names = ("strictly_local", "tier_strictly_local", "strictly_piecewise", "locally_testable")
    assert {name for name in names if getattr(facts, name).value} == set(expected.split())


def test_the_tier_and_the_machines_without_a_language():
    assert set(classify(MooreMachine.from_source("regex:(c*ac*b)*c*")).tier) == {"a", "b"}
    facts = classify(zoo.sum_mod(3))
    assert facts.strictly_local.value is facts.strictly_piecewise.value is None
    assert "outputs are not True and False" in facts.strictly_local.method
