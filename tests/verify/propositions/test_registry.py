"""The registry of propositions, and contradictions."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import UnsupportedFormat
from verify import propositions
from verify.propositions import (
    FAST,
    REGISTRY,
    Effort,
    Outcome,
    Proposition,
    Proved,
    Refuted,
    Tested,
    Undecided,
    contradiction,
)
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
from verify.propositions.registry import refuted, trial

SMALL = Effort("small", examples=40, exhaustive=1)


def proposition(answer, expects):
    return Proposition("p", "Statement.", "none", "here", lambda effort: answer, expects)  # noqa: ARG005


@pytest.mark.parametrize("answer", [Proved("by hand", 1), Tested("cases", 3, 0), refuted("no"), Undecided("1 s")])
@pytest.mark.parametrize("expects", [Proved, Tested, Refuted, Undecided])
def test_an_answer_is_expected_if_it_is_of_the_kind_named(answer, expects):
    (outcome,) = propositions.run([proposition(answer, expects)])
    assert outcome == Outcome(outcome.proposition, answer)
    assert outcome.expected == (type(answer) is expects)


def test_answers_witnesses_and_ids():
    with pytest.raises(TypeError, match="Tested is no truth value"):
        bool(Tested("", 1, 0))
    wanted = [p for p in REGISTRY if p.expects is Refuted]
    assert len(wanted) >= 5
    for outcome in propositions.run(wanted, SMALL):
        json.dumps(dict(outcome.answer.data))
    assert len({p.id for p in REGISTRY}) == len(REGISTRY)
    assert FAST.examples < propositions.DEEP.examples


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


def test_progress_and_selection():
    told = []
    effort = Effort("watched", 5, 1, progress=lambda done, total: told.append((done, total)))
    assert list(effort.track("abc")) == ["a", "b", "c"]
    trial("integers", st.integers(), lambda _: None, effort)
    assert told == [(0, 3), (1, 3), (2, 3), *((k, 5) for k in range(1, 6))]
    assert propositions.select(REGISTRY, []) == list(REGISTRY)
    assert [p.id for p in propositions.select(REGISTRY, ["eq-7", "prop-1-words"])] == ["prop-1-words", "eq-7"]
    with pytest.raises(
        UnsupportedFormat, match="proposition 'eq-8' is not in the registry: choose from prop-1-words, "
    ):
        propositions.select(REGISTRY, ["eq-8"])


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


def test_words_and_equations():
    assert missing(PAPER, lambda word: word == "1-0") is None
    assert missing(PAPER, len) == (
        "the weighted states leave nothing, not a multiple of one difference: 0-1 ↦ 3, 1-0 ↦ 3, 0-0-1 ↦ 5, 0-1-0 ↦ 5"
    )
    assert "leave {'a': 1}" in missing({"a": 1}, str)
    assert contradiction.equation(PAPER) == "x_0-1 − x_1-0 − x_0-0-1 + x_0-1-0 = 0"
