"""Witnesses, methods and words in sentences on known examples; test_classification has the definitions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import Action, Fact, FactWitness, classify, local


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


def test_a_cycle_of_states_and_two_letters_that_do_not_run_together():
    witness = classify(zoo.elevator(3)).r_trivial.witness
    assert (witness.words, witness.states) == ((("u", "d"),), (0, 1, 0))
    c = classify(MooreMachine.from_source("regex:a*b.*", alphabet="abc"))
    assert (c.r_trivial.value, c.j_trivial.value) == (True, False)
    assert c.j_trivial.witness.words == (tuple("bbc"), tuple("cbc"))
    assert (c.j_trivial.witness.states[0], {*c.j_trivial.witness.states[1:]}) == (0, {1, 2})
    assert c.l_trivial.witness == c.j_trivial.witness


def test_how_l_triviality_is_decided():
    assert classify(zoo.tomita(7)).l_trivial.method == "polynomial: since the monoid is J-trivial"
    assert classify(zoo.parity()).l_trivial.method == "since the monoid is not aperiodic"
    c = classify(zoo.flip_flop())
    assert (c.l_trivial.value, c.l_trivial.method) == (True, "by enumeration of the monoid, 3 elements")
    c = classify(zoo.ab_star())
    assert c.l_trivial.value is False
    u, v, x, y = c.l_trivial.witness.words
    assert c.l_trivial.witness.says.startswith(f"{''.join(u)!r} and {''.join(v)!r} act unlike on state ")
    assert (len(x) > 0, len(y) > 0) == (True, True)
    fact = classify(zoo.elevator(7), max_monoid=5).l_trivial
    assert (fact.value, fact.method) == (None, "capped at 5 elements of the monoid")


def test_a_single_pair(check_witness):
    """uv = u and vu = v, sr = r and rs = s, all four idempotent, other products zero: only u and v are L-equivalent."""
    one, u, v, s, r, zero = range(6)
    rows = [
        [u, u, v, zero, zero, zero],
        [v, u, v, zero, zero, zero],
        [s, zero, zero, s, s, zero],
        [r, zero, zero, r, r, zero],
    ]
    c = classify(MooreMachine(rows, range(6), start=one, alphabet="uvsr"))
    assert (c.monoid_size.value, c.r_trivial.value, c.l_trivial.value) == (6, False, False)
    assert {*c.l_trivial.witness.words[:2]} == {("u",), ("v",)}
    check_witness(c, "l_trivial")


def test_patterns_that_break_local_testability():
    witness = classify(zoo.flip_flop()).locally_testable.witness
    assert (witness.words, witness.states) == (((".",), ("s",), ("r",)), (0, 1))
    witness = classify(MooreMachine.from_source("regex:b*ab*", alphabet="ab")).locally_testable.witness
    assert (witness.words, witness.states) == ((("b",), ("a",)), (0, 1, 2))
    assert witness.says == "'b' fixes states 0, 1 and 2, yet 'a' leads 0 to 1 and 1 on to 2"
    c = classify(MooreMachine.from_source("regex:a*b.*", alphabet="abc"))
    witness = c.locally_testable.witness
    assert (witness.words, set(witness.states)) == ((("a",), ("b",), ("c",)), {0, 1, 2})
    assert classify(MooreMachine([[0, 1, 2], [2, 1, 2], [1, 1, 1]], range(3))).locally_testable.value is True


def test_too_large_to_search(monkeypatch):
    machine = zoo.contains("aab")
    assert classify(machine).locally_testable.value is True
    monkeypatch.setattr(local, "MAX_STEPS", 4**4 * 2 - 1)
    fact = classify(machine).locally_testable
    assert (fact.value, fact.method) == (None, "undecided: 64 triples of states with 2 letters are too many to search")
    monkeypatch.setattr(local, "MAX_TUPLES", 4**2 * 2 - 1)
    fact = classify(machine).locally_testable
    assert fact.method == "undecided: 16 pairs of states with 2 letters are above 31 edges"
    assert classify(zoo.shift_register(3)).locally_testable.method == "since the machine is definite"


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


def test_a_fact_is_no_truth_value_and_has_a_witness():
    with pytest.raises(TypeError, match="a Fact is no truth value, since it may be undecided"):
        bool(Fact(True, "by hand"))
    fact = Fact(False, "by hand", FactWitness("'ab' does it", (("a", "b"),), (0, 2)))
    assert fact.explain(", so") == "no, so: 'ab' does it (by hand)"
    assert fact.to_json() == {
        "value": False,
        "method": "by hand",
        "witness": {"says": "'ab' does it", "words": [["a", "b"]], "states": [0, 2]},
    }
    assert Fact(True, "by hand").to_json()["witness"] is None


def action_over(*alphabet):
    return Action.of(MooreMachine([[i, 1 - i] for i in range(2)][: len(alphabet)], (0, 1), alphabet=alphabet))


def test_long_words_are_shortened_and_letters_with_spaces_told_apart():
    action = action_over("a", "b")
    assert (action.spell(("a", "b")), action.spell(())) == ("'ab'", "the empty word")
    assert action.spell(tuple("ab" * 20)) == repr("ab" * 20)
    assert action.spell(tuple("a" * 60 + "b")) == f"'{'a' * 20}…b' (61 letters)"
    assert action_over(10, "x").spell((10,) * 41).endswith(" … 10' (41 letters)")
    action = action_over("a b", "a")  # 'a b' was one letter or two
    assert action.spell(("a b", "a")) == '["a b", "a"]'
    assert action.spell(("a b",) * 41).endswith(' … ["a b"] (41 letters)')
    assert action_over("a", "ab").spell(("a", "ab")) == "'a ab'"


def test_letters_that_act_alike_are_kept_once():
    action = Action.of(zoo.length_mod(3, letters="abc"))
    assert (action.letters.tolist(), action.names) == ([[1, 2, 0]], ("a",))
    action = Action.of(zoo.flip_flop())
    assert action.word([0, 1, 2]) == ("s", "r", ".")
    assert action.follow(0, [0, 2, 1]) == [0, 1, 1, 0]
    assert action.successors.tolist() == [[1, 0, 0], [1, 0, 1]]
