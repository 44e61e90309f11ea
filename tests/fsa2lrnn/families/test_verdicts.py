"""Verdicts carry their evidence, say it in words, and notice when it is wrong; a witness that gives tables runs."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.families import Impossibility, RejectedCertificate, Term, Unknown, Witness, represent
from fsa2lrnn.families.four_words import FourWords
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.families.verdicts import AffineTables, AffineWitness
from fsa2lrnn.lower import lower_witness
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification import Proved, Refuted, prove_equivalent


def test_impossibilities_in_words():
    verdict = represent(zoo.subtraction(5), "diagonal[0,1]")
    assert verdict.four_words == (("-",), ("-", "0"), ("0", "-"))
    assert verdict.explain().endswith(
        '"-0" and "0-" must differ, "--0" and "-0-" must agree; yet "-0" and "0-" have the same letters, so in this '
        "family x(--0) − x(-0-) = x(-0) − x(0-): a contradiction in four words."
    )
    assert verdict.explain().startswith("States 1 (")
    assert " would have to share one vector, though " in verdict.explain()
    verdict = represent(zoo.flip_flop(), "lti")
    assert verdict.explain().endswith(
        '"ss" and "s." must agree; yet "s" and "." have equal length, so in this family '
        "x(ss) − x(s.) = x(s) − x(.): a contradiction in four words."
    )
    told = represent(zoo.sum_mod(3), "diagonal[0,1]").explain()
    assert told.endswith(
        "2 equations that the family forces add up to it; no four words were found that do so by themselves."
    )
    machine = MooreMachine([[1, 1, 2], [2, 1, 2]], "xyz", alphabet=["left", "right"])
    verdict = represent(machine, "lti")
    assert '"left"' in verdict.explain()
    assert replace(verdict, words=FourWords((0,), (0, 1), (1, 0), True)).explain().count("left right") >= 1
    assert Unknown(zoo.parity(), "householder", "for want of time").explain() == "for want of time"


def test_a_witness_is_told_by_its_channels_and_integer_weights_are_exact():
    told = {
        ("sum_mod(5)", "diagonal-complex"): "2 real dimensions: 1 rotating by multiples of 1/5 turn.",
        ("parity", "diagonal[-1,1]"): "1 real dimension: 1 real channel.",
        ("group(Z2xZ2)", "diagonal[-1,1]"): "2 real dimensions: 2 real channels.",
        (
            "sum_mod(6)",
            "diagonal-complex",
        ): ("3 real dimensions: 1 real channel and 1 rotating by multiples of 1/3 turn."),
        ("shift_register(3)", "lti"): "An integer matrix of 3 dimensions, the same for every letter.",
    }
    assert {case: represent(zoo.from_task(case[0]), case[1]).explain() for case in told} == told
    assert represent(zoo.shift_register(3), "lti").is_exact
    assert represent(zoo.parity(), "diagonal-complex").is_exact
    assert represent(zoo.sum_mod(4), "diagonal-complex").is_exact
    assert not represent(zoo.sum_mod(3), "diagonal-complex").is_exact


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
    channels = tuple(replace(channel, values=(channel.values[p], *channel.values[1:])) for channel in verdict.form)
    with pytest.raises(RejectedCertificate, match=r"does not follow|the same vector"):
        replace(verdict, form=channels).check()


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


@dataclass(frozen=True)
class OneHot(AffineWitness):
    """States at the unit vectors, each letter its own matrix."""

    machine: MooreMachine

    def tables(self):
        delta, n = self.machine.delta, self.machine.n_states
        A = np.zeros((len(delta), 1, n, n))
        for a, step in enumerate(delta):
            A[a, 0, step, np.arange(n)] = 1
        return AffineTables(A, np.zeros((len(delta), 1, n)), np.eye(n)[:, None], (n,))


class Swapped(OneHot):
    """With the vectors of two letters in each other's place."""

    def tables(self):
        tables = super().tables()
        return AffineTables(tables.A[::-1].copy(), tables.v, tables.x, tables.block_sizes)


def test_tables_become_a_network_that_is_proved_equal_and_without_there_is_none():
    machine = zoo.group("S3")
    model = lower_witness(OneHot(machine))
    assert model.layers[0].block_sizes == (6,)
    assert isinstance(prove_equivalent(model, machine), Proved)
    assert isinstance(prove_equivalent(lower_witness(Swapped(machine)), machine), Refuted)
    with pytest.raises(NotImplementedError):
        lower_witness(AffineWitness())
