"""Local testability: every pattern that breaks it, and the limits of the search."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import classify, local


@pytest.mark.parametrize(
    ("regex", "alphabet"),
    [("(ab)*", "ab"), ("(abc)*", "abc"), (".*aba.*", "ab"), ("a.*b", "ab"), ("(.*a.*)&~", "ab"), ("a*b*", "ab")],
)
def test_locally_testable_languages(regex, alphabet):
    regex = "a|b*a.*" if regex.endswith("~") else regex
    assert classify(MooreMachine.from_source(f"regex:{regex}", alphabet=alphabet)).locally_testable.value is True


def test_one_component():
    """A factor in between is forgotten: a state is fixed here and there."""
    witness = classify(zoo.flip_flop()).locally_testable.witness
    assert (witness.words, witness.states) == (((".",), ("s",), ("r",)), (0, 1))


def test_counting_an_occurrence():
    """Exactly one a among b's: b* fixes all that a leads on."""
    witness = classify(MooreMachine.from_source("regex:b*ab*", alphabet="ab")).locally_testable.witness
    assert (witness.words, witness.states) == ((("b",), ("a",)), (0, 1, 2))
    assert witness.says == "'b' fixes states 0, 1 and 2, yet 'a' leads 0 to 1 and 1 on to 2"


def test_which_came_first():
    """Whether b came before c is no matter of factors: a may stand between."""
    c = classify(MooreMachine.from_source("regex:a*b.*", alphabet="abc"))
    witness = c.locally_testable.witness
    assert (witness.words, set(witness.states)) == ((("a",), ("b",), ("c",)), {0, 1, 2})


def test_two_words_that_run_together():
    """One word leads 0 to 2 past 1, but that to 1 leads 2 there as well: the identity and two maps that commute."""
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
