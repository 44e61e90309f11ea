"""The subregular classes compared with definitions on words and monoids; the leaderboard of MLRegTest."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.studies.mlregtest import board, factors, leaderboard
from experiments.studies.mlregtest.languages import names
from experiments.studies.mlregtest.subregular import subregular_facts
from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.table_kernels import coaccessible
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas
from tests.fsa2lrnn.automata.monoid.conftest import Brute


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


@settings(max_examples=60, deadline=None)
@given(dfas(max_states=4, max_letters=2))
def test_answers_by_words_and_refutations_by_their_witnesses(machine):
    minimal = minimise(machine)
    facts, order = subregular_facts(minimal, 1_000)
    if facts["strictly_local"].value:
        k = order
        assert live_ends(minimal, k - 1) <= 1
        assert k == 1 or live_ends(minimal, k - 2) > 1
    else:
        (word,), states = facts["strictly_local"].witness.words, facts["strictly_local"].witness.states
        assert word
        assert len(set(states)) == 2
        assert all(after(minimal, word, q) == q for q in states)
        assert coaccessible(minimal.delta, np.array(minimal.outputs, bool))[list(states)].all()
    if facts["strictly_piecewise"].value:
        for word in product(minimal.alphabet, repeat=5):
            shorter = [word[:i] + word[i + 1 :] for i in range(5)]
            assert not minimal.accepts(word) or all(map(minimal.accepts, shorter))
    else:
        (letter, word), (q, p) = facts["strictly_piecewise"].witness.words, facts["strictly_piecewise"].witness.states
        assert after(minimal, letter, q) == p
        assert minimal.outputs[after(minimal, word, p)]
        assert not minimal.outputs[after(minimal, word, q)]
    for name in ("strictly_local", "locally_testable"):
        assert facts[f"tier_{name}"].value or not facts[name].value


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
def test_answers_by_the_identities_and_refutations_by_their_witnesses(machine):
    by_definition = Brute(machine)
    if len(by_definition.semigroup) > 40:
        return
    minimal = minimise(machine)
    facts, _ = subregular_facts(minimal, 1_000)
    assert tuple(facts[name].value for name in NAMES) == by_identities(by_definition)
    for name in (*NAMES, *(f"tier_{name}" for name in NAMES)):
        if facts[name].value is False:
            check_witness(minimal, facts[name].witness)


QUICK = ("onehot", "released", "pd_ssm")  # one-hot, trained and verified, searched alone


@pytest.mark.long_cases("onehot", "pd_ssm", "released")
@pytest.mark.parametrize(
    "arm", [arm if arm in QUICK else pytest.param(arm, marks=pytest.mark.slow) for arm in leaderboard.ARMS]
)
def test_each_layer_runs_and_is_verified_or_searched(arm, monkeypatch):
    monkeypatch.setattr(leaderboard, "language", lambda _: zoo.ab_star())
    monkeypatch.setattr(leaderboard, "PROTOCOL", {**leaderboard.PROTOCOL, "steps": 2, "evaluate_every": 2})
    monkeypatch.setattr(leaderboard, "CERTIFY", 0.1)
    monkeypatch.setattr(leaderboard, "SEARCH", replace(leaderboard.SEARCH, seconds=0.1))
    monkeypatch.setattr(leaderboard, "WORDS", 20)
    monkeypatch.setattr(leaderboard, "LENGTHS", (5, 9))
    run = leaderboard.run_one("ab_star", arm, 0)
    assert run["last_9"] >= run["whole_9"]
    if arm == "onehot":
        assert run["proved"]
        assert run["whole_9"] == leaderboard.WORDS
    else:
        assert not run["proved"]
        assert run["certified"] is None or run["fails_at"] is None or run["certified"] < run["fails_at"]


def test_rows_of_the_stored_results_compare_the_same_languages():
    results = board.document()
    runs = Counter(run["arm"] for run in results["runs"])
    assert set(runs) == set(results["asked"]["arms"])
    assert set(runs.values()) == {results["complete"].total()}
    assert results["finished"] >= len(results["runs"])
    for run in results["runs"]:
        if run.get("certified") is not None and run["fails_at"] is not None:
            assert run["certified"] < run["fails_at"]


def test_a_folder_without_languages_is_refused(tmp_path):
    with pytest.raises(UnsupportedFormat, match=r"has no \.att file"):
        names(tmp_path)


def test_limits_leave_undecided_what_words_of_two_letters_do_not_refute(monkeypatch):
    def facts_of(machine):
        return subregular_facts(machine, 1_000)[0]

    machine = zoo.contains("aab")
    assert facts_of(machine)["locally_testable"].value is True
    monkeypatch.setattr(factors, "MAX_STEPS", 4**4 * 2 - 1)
    fact = facts_of(machine)["locally_testable"]
    assert (fact.value, fact.method) == (None, "undecided: 64 triples of states with 2 letters are too many to search")
    monkeypatch.setattr(factors, "MAX_NODES", 50)
    once = MooreMachine.from_source("regex:[^a]*a[^a]*", alphabet="abc")
    assert "27 triples of 3 states with 2 letters are too many" in facts_of(once)["threshold_testable"].method
    a_before_b = MooreMachine.from_source("regex:[^a]*a[^b]*b.*", alphabet="abc")
    fact = facts_of(a_before_b)["threshold_testable"]
    assert (fact.value, fact.method) == (False, "by words of at most two letters")
    check_witness(minimise(a_before_b), fact.witness)
