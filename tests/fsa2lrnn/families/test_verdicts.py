"""Verdicts carry their evidence, say it in words, and notice when it is wrong."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.families import Impossibility, RejectedCertificate, Term, Unknown, Witness, represent
from fsa2lrnn.families.four_words import FourWords
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.lower import lower_witness
from fsa2lrnn.testing.strategies import machines


def test_an_impossibility_is_told_in_four_words():
    verdict = represent(zoo.subtraction(5), "diagonal[0,1]")
    assert verdict.four_words == (("-",), ("-", "0"), ("0", "-"))
    assert verdict.explain().endswith(
        '"-0" and "0-" must differ, "--0" and "-0-" must agree; yet "-0" and "0-" have the same letters, so in this '
        "family x(--0) − x(-0-) = x(-0) − x(0-): a contradiction in four words."
    )
    assert verdict.explain().startswith("States 1 (")
    assert " would have to share one vector, though " in verdict.explain()


def test_words_that_must_agree_at_the_start_are_told_the_other_way_round():
    verdict = represent(zoo.flip_flop(), "lti")
    assert verdict.explain().endswith(
        '"ss" and "s." must agree; yet "s" and "." have equal length, so in this family '
        "x(ss) − x(s.) = x(s) − x(.): a contradiction in four words."
    )


def test_an_impossibility_without_four_words_counts_its_equations():
    assert represent(zoo.sum_mod(3), "diagonal[0,1]").explain() == (
        "States 0 (0) and 1 (1) would have to share one vector, though their outputs differ. 2 equations that the "
        "family forces add up to it; no four words were found that do so by themselves."
    )


def test_words_of_long_letters_are_spaced():
    machine = MooreMachine([[1, 1, 2], [2, 1, 2]], "xyz", alphabet=["left", "right"])
    verdict = represent(machine, "lti")
    assert '"left"' in verdict.explain()
    assert replace(verdict, words=FourWords((0,), (0, 1), (1, 0), True)).explain().count("left right") >= 1


def test_a_witness_is_told_by_its_lanes():
    told = {
        ("sum_mod(5)", "diagonal-complex"): "2 real dimensions: 1 rotating by multiples of 1/5 turn.",
        ("parity", "diagonal[-1,1]"): "1 real dimension: 1 real lane.",
        ("group(Z2xZ2)", "diagonal[-1,1]"): "2 real dimensions: 2 real lanes.",
        ("sum_mod(6)", "diagonal-complex"): "3 real dimensions: 1 real lane and 1 rotating by multiples of 1/3 turn.",
        ("shift_register(3)", "lti"): "An integer matrix of 3 dimensions, the same for every letter.",
    }
    assert {case: represent(zoo.from_task(case[0]), case[1]).explain() for case in told} == told


def test_integer_weights_are_exact_and_other_rotations_are_not():
    assert represent(zoo.shift_register(3), "lti").is_exact
    assert represent(zoo.parity(), "diagonal-complex").is_exact
    assert represent(zoo.sum_mod(4), "diagonal-complex").is_exact
    assert not represent(zoo.sum_mod(3), "diagonal-complex").is_exact


def test_unknown_says_why():
    assert Unknown(zoo.parity(), "householder", "for want of time").explain() == "for want of time"


@given(machines(4, 2), st.sampled_from(list(FORCED)), st.data())
def test_an_impossibility_with_a_wrong_coefficient_fails_its_check(machine, family, data):
    verdict = represent(machine, family, short_words=False)
    if not isinstance(verdict, Impossibility):
        return
    i = data.draw(st.integers(0, len(verdict.terms) - 1))
    term = replace(verdict.terms[i], coefficient=verdict.terms[i].coefficient + Fraction(1, 2))
    with pytest.raises(RejectedCertificate, match="the terms do not add up"):
        replace(verdict, terms=(*verdict.terms[:i], term, *verdict.terms[i + 1 :])).check()


@given(machines(4, 2), st.sampled_from([family for family in FORCED if family != "lti"]), st.data())
def test_a_witness_with_two_states_at_one_place_fails_its_check(machine, family, data):
    verdict = represent(machine, family, short_words=False)
    if not isinstance(verdict, Witness) or verdict.machine.n_states == 1:
        return
    p = data.draw(st.integers(1, verdict.machine.n_states - 1))
    lanes = tuple(replace(lane, values=(lane.values[p], *lane.values[1:])) for lane in verdict.form)
    with pytest.raises(RejectedCertificate, match=r"does not follow|the same vector"):
        replace(verdict, form=lanes).check()


@pytest.mark.parametrize(
    "words",
    [
        FourWords((0,), (2, 2), (0, 2), True),
        FourWords((), (2, 0), (0, 2), True),
        FourWords((2,), (2, 0), (2, 0), True),
        FourWords((2,), (2, 0), (0, 2), False),
    ],
)
def test_four_words_that_show_nothing_fail_the_check(words):
    verdict = represent(zoo.subtraction(2), "diagonal[0,1]")
    assert verdict.check()
    with pytest.raises(RejectedCertificate):
        replace(verdict, words=words).check()


def test_a_separator_and_a_family_are_part_of_what_is_checked():
    verdict = represent(zoo.subtraction(5), "diagonal[0,1]")
    with pytest.raises(RejectedCertificate, match="does not tell"):
        replace(verdict, states=(1, 1)).check()
    with pytest.raises(RejectedCertificate, match="may differ in the family lti"):
        replace(represent(zoo.parity(), "diagonal[0,1]"), family="lti").check()
    with pytest.raises(RejectedCertificate, match="outside the family"):
        replace(represent(zoo.parity(), "diagonal[-1,1]"), family="diagonal[0,1]").check()


@given(machines(5, 3), st.sampled_from(list(FORCED)))
def test_certificates_hold_the_claim_the_machine_and_plain_numbers(machine, family):
    verdict = represent(machine, family, short_words=False)
    document, minimal = verdict.to_json(), machine.minimise()
    assert (document["format"], document["version"], document["family"]) == ("fsa2lrnn-family-certificate", 1, family)
    assert document["verdict"] == ("impossible" if isinstance(verdict, Impossibility) else "representable")
    assert MooreMachine(**document["machine"]) == minimal
    if isinstance(verdict, Impossibility):
        assert len(document["terms"]) == len(verdict.terms) > 0
        assert all(isinstance(term, Term) and term.coefficient for term in verdict.terms)


@pytest.mark.parametrize(
    ("source", "family"),
    [("shift_register(2)", "lti"), ("flip_flop", "diagonal[0,1]"), ("sum_mod(4)", "diagonal-complex")],
)
def test_an_exact_witness_lowers_to_a_network_that_is_proved_equal(source, family):
    from fsa2lrnn.verification import Proved, prove_equivalent

    witness = represent(zoo.from_task(source), family)
    assert isinstance(prove_equivalent(lower_witness(witness), zoo.from_task(source)), Proved)
