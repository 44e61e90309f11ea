"""Witnesses, methods, groups inside monoids, sentences on known examples; test_classification has the definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import Action, Fact, FactWitness, classify, factors


def test_groups_and_commutative_machines():
    witness = classify(zoo.resettable_counter(3)).group.witness
    assert (witness.words, witness.states) == ((("0",),), (0, 1, 0))
    assert witness.says == "'0' leads states 0 and 1 both to 0"
    witness = classify(zoo.ab_star()).commutative.witness
    assert (witness.words, witness.states) == ((("a", "b"), ("b", "a")), (0, 0, 2))
    assert witness.says == "from state 0, 'ab' leads to 0 and 'ba' to 2"
    c = classify(MooreMachine([[1, 2, 2], [0, 1, 2]], range(3)))
    assert (c.group.value, c.commutative.value, c.aperiodic.value) == (False, True, True)
    assert c.aperiodic.method == "polynomial: no cycles but loops, since the monoid is R-trivial"
    n = 500
    row = [*range(1, n), 1]
    assert classify(MooreMachine([row], range(n))).group.witness.states == (0, n - 1, 1)


@st.composite
def chains_of_semilattices(draw) -> MooreMachine:
    """Machines of five states whose letters are idempotent and never lead back, but for one transition."""
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        row = list(range(5))
        for q in range(3, -1, -1):
            row[q] = row[draw(st.integers(q, 4))] if draw(st.booleans()) else q
        rows.append(row)
    rows[0][draw(st.integers(0, 4))] = draw(st.integers(0, 4))
    return MooreMachine(rows, range(5))


@settings(deadline=None)
@given(chains_of_semilattices())
def test_triples_against_the_definition(brute, check_witness, m):
    c = classify(m)
    assert c.locally_testable.value is brute(m).locally_testable()
    if not c.locally_testable.value:
        check_witness(c, "locally_testable")


def test_facts_are_no_truth_values_and_words_are_spelled():
    with pytest.raises(TypeError, match="a Fact is not a truth value, it may be undecided"):
        bool(Fact(True, "by hand"))
    fact = Fact(False, "by hand", FactWitness("'ab' does it", (("a", "b"),), (0, 2)))
    assert fact.explain(", so") == "no, so: 'ab' does it (by hand)"
    assert fact.to_json() == {
        "value": False,
        "method": "by hand",
        "witness": {"says": "'ab' does it", "words": [["a", "b"]], "states": [0, 2]},
    }
    assert Fact(True, "by hand").to_json()["witness"] is None
    action = action_over("a", "b")
    assert (action.spell(("a", "b")), action.spell(())) == ("'ab'", "the empty word")
    assert action.spell(tuple("ab" * 20)) == repr("ab" * 20)
    assert action.spell(tuple("a" * 60 + "b")) == f"'{'a' * 20}…b' (61 letters)"
    assert action_over(10, "x").spell((10,) * 41).endswith(" … 10' (41 letters)")
    action = action_over("a b", "a")  # 'a b' was one letter or two
    assert action.spell(("a b", "a")) == '["a b", "a"]'
    assert action.spell(("a b",) * 41).endswith(' … ["a b"] (41 letters)')
    assert action_over("a", "ab").spell(("a", "ab")) == "'a ab'"


def action_over(*alphabet):
    return Action.of(MooreMachine([[i, 1 - i] for i in range(2)][: len(alphabet)], (0, 1), alphabet=alphabet))


def test_methods_and_limits_of_the_search(monkeypatch):
    def method(source, **limit):
        return classify(zoo.from_task(source), **limit).aperiodic.method

    assert method("parity") == "polynomial: a letter turns a cycle"
    assert method("tomita(7)") == "polynomial: no cycles but loops, since the monoid is R-trivial"
    assert method("ab_star") == "polynomial: since the machine is locally testable"
    assert method("elevator(4)") == "by enumeration of the monoid, 18 elements"
    assert method("elevator(40)", max_monoid=1_000) == "by enumeration of the images, 820 sets of states"
    machine = zoo.contains("aab")
    assert classify(machine).locally_testable.value is True
    monkeypatch.setattr(factors, "MAX_STEPS", 4**4 * 2 - 1)
    fact = classify(machine).locally_testable
    assert (fact.value, fact.method) == (None, "undecided: 64 triples of states with 2 letters are too many to search")
    monkeypatch.setattr(factors, "MAX_NODES", 4**2 * 2 - 1)
    fact = classify(machine).locally_testable
    assert fact.method == "undecided: 16 pairs of states with 2 letters are above 31 edges"
    assert classify(zoo.shift_register(3)).locally_testable.method == "since the machine is definite"


def test_images_and_groups_beyond_the_limits(check_witness):
    m = MooreMachine([[2, 4, 2, 1, 0], [0, 3, 3, 3, 3]], range(5))
    c = classify(m, max_monoid=12)
    assert (c.aperiodic.value, c.aperiodic.method) == (False, "by enumeration of the images")
    check_witness(c, "aperiodic")
    assert classify(m).aperiodic.method == "by enumeration of the monoid, shortest word first"
    c = classify(zoo.random_dfa(100, 6, seed=1, minimal=True), max_monoid=100_000)
    assert (c.solvable.value, c.solvable.method) == (False, "by the elements found of the monoid")
    check_witness(c, "solvable")
    q = np.arange(16)
    swap, turn = q.copy(), q.copy()
    swap[:2], turn[:4] = [1, 0], [1, 2, 3, 0]
    c = classify(MooreMachine([swap, turn, np.roll(q, 4)], range(16)), max_monoid=5_000)
    assert c.solvable.value is None
    assert c.solvable.method == "capped at 5,000 elements of a group that permutes 16 states"


@settings(deadline=None)
@given(st.data())
def test_images_decide_as_the_monoid_does(brute, check_witness, data):
    n = data.draw(st.integers(2, 5))
    row = st.lists(st.integers(0, n - 1), min_size=n, max_size=n)
    m = MooreMachine([data.draw(row) for _ in range(2)], range(n))
    by_definition = brute(m)
    images = {frozenset(f) for f in by_definition.monoid}
    c = classify(m, max_monoid=max(len(images), 1))
    assert c.aperiodic.value is by_definition.aperiodic()
    assert c.solvable.value is True or n == 5
    if not c.aperiodic.value:
        check_witness(c, "aperiodic")


@pytest.mark.parametrize(
    ("rows", "solvable"),
    [
        ([[1, 2, 0, 3, 4, 0], [0, 1, 3, 4, 2, 0], [5, 5, 5, 5, 5, 5]], False),  # A₅ on five of six
        ([[1, 2, 3, 4, 0, 0], [0, 2, 4, 1, 3, 0], [5, 5, 5, 5, 5, 0]], True),  # the affine group of five, order 20
        ([[1, 2, 3, 4, 5, 0], [5, 4, 3, 2, 1, 0], [0, 0, 2, 2, 4, 4]], True),  # the dihedral group of six
    ],
)
def test_solvability_against_the_definition(brute, check_witness, rows, solvable):
    m = MooreMachine(rows, range(6), start=5)
    c = classify(m)
    assert c.solvable.value is solvable is brute(m).solvable()
    if not solvable:
        check_witness(c, "solvable")


@pytest.mark.parametrize("n", [7, 9, 16])
def test_a_group_too_large_to_list(n):
    c = classify(zoo.all_maps(n), max_monoid=1_000)
    assert (c.solvable.value, c.solvable.method) == (False, "by the groups that permute the images")
    assert c.solvable.witness.words == (("c",), ("t",))
    assert c.solvable.witness.states == tuple(range(n))
