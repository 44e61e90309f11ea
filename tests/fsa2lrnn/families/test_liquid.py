"""Liquid-S4: the weights replayed exactly and run, the missing hypothesis of T6, and the honest unknown."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.families import Impossibility, LiquidWitness, RejectedCertificate, Unknown, recheck, represent
from fsa2lrnn.families.closure import obstruction
from fsa2lrnn.families.identities import Family, commutator
from fsa2lrnn.families.liquid import dense_liquid
from fsa2lrnn.lower import lower_witness
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification import Proved, prove_equivalent
from tests.fsa2lrnn.families.conftest import changed


@given(machines(max_states=5, max_letters=2))
@example(MooreMachine([[0]], ["only"]))
@example(zoo.length_mod(5))
@example(zoo.parity())
def test_every_witness_follows_the_recurrence_by_its_definition(machine):
    for family in ("liquid-s4", "liquid-s4-diagonal"):
        verdict = represent(machine, family)
        if isinstance(verdict, LiquidWitness):
            verdict.check()
            minimal = machine.minimise()
            A = np.array(verdict.A, dtype=object)
            for a, row in enumerate(minimal.delta):
                b = np.array(verdict.B[a], dtype=object)
                for q, target in enumerate(row):
                    x = np.array(verdict.vectors[q], dtype=object)
                    assert list((A + np.diag(b)) @ x + b) == list(verdict.vectors[target])
            if verdict.is_exact:
                assert isinstance(prove_equivalent(lower_witness(verdict), machine), Proved)


@given(machines(max_states=5, max_letters=2))
def test_with_diagonal_a_it_does_no_more_than_a_diagonal_layer(machine):
    """Proposition 2 applies, and its certificate is accepted for this family too."""
    verdict, diagonal = represent(machine, "liquid-s4-diagonal"), represent(machine, "diagonal-complex")
    if isinstance(diagonal, Impossibility):
        assert isinstance(verdict, Impossibility)
        assert verdict.check().startswith("impossible")
    else:
        assert not isinstance(verdict, Impossibility)


def test_s3_which_no_diagonal_layer_represents_has_a_dense_one():
    machine = zoo.group("S3")
    assert isinstance(represent(machine, "diagonal-complex"), Impossibility)
    witness = represent(machine, "liquid-s4")
    assert isinstance(witness, LiquidWitness)
    assert not witness.is_exact  # thirds among the weights
    assert "representable" in witness.check()
    word = ["(1,2)", "(1,2,3)", "(1,2)"] * 40
    assert lower_witness(witness).transduce(word) == machine.transduce(word)


def test_the_hypothesis_that_t6_needs_on_the_whole_space():
    """On Z the difference of set and reset vanishes, so it is diagonalisable there; on ℚ² it is nilpotent."""
    machine = MooreMachine([[1, 1], [0, 0]], [0, 1], alphabet=["set", "reset"])
    difference = np.array([[0, 0], [1, 1]]) - np.array([[1, 1], [0, 0]])
    assert not (difference @ [1, -1]).any()
    assert difference.any()
    assert not (difference @ difference).any()
    assert isinstance(represent(machine, "liquid-s4"), Unknown)


@pytest.mark.parametrize(
    ("machine", "family", "reason"),
    [
        (zoo.sum_mod(3), "liquid-s4", "no rational eigenbasis"),
        (zoo.sum_mod(3), "liquid-s4-diagonal", "rotations"),
        (zoo.flip_flop(), "liquid-s4-diagonal", "letters of one multiplier and unlike shifts"),
        (zoo.cerny(4), "liquid-s4", "no rational eigenbasis|do not commute"),
    ],
)
def test_what_is_not_settled_is_unknown_and_says_why(machine, family, reason):
    verdict = represent(machine, family)
    assert isinstance(verdict, Unknown)
    assert re.search(reason, verdict.explain())


@given(machines(max_states=5, max_letters=3))
def test_the_necessary_condition_never_refutes_what_t6_represents(machine):
    """The two are found in different ways: an eigenbasis, and commutators of differences."""
    minimal = machine.minimise()
    if isinstance(dense_liquid(minimal), LiquidWitness):
        assert obstruction(Family("commuting-differences"), minimal.delta).merged()[1] == minimal.n_states


@pytest.mark.parametrize("task", ["subtraction(5)", "mod_arith(3)", "group(S3, generators=all)"])
def test_no_liquid_s4_layer_at_all_represents_these(task):
    verdict = represent(zoo.from_task(task), "liquid-s4")
    assert isinstance(verdict, Impossibility)
    assert verdict.check().startswith("impossible: no liquid-s4 layer")
    assert all(len(term.words) == 6 for term in verdict.terms)
    assert verdict.explain().endswith("differences of letters, being diagonal, commute.")


def test_a_commutator_adds_up_to_zero_for_commuting_differences():
    """The six signed words are [A_a − A_c, A_b − A_c], for matrices whose differences are diagonal."""
    rng = np.random.default_rng(0)
    base = rng.integers(-3, 4, (3, 3))
    A = [base + np.diag(rng.integers(-3, 4, 3)) for _ in range(3)]
    identity = commutator(0, 1, 2, np.zeros((3, 1), int))
    total = sum(
        s * (A[second] @ A[first]) for s, ((first, _), (second, _)) in zip(identity.signs, identity.words, strict=True)
    )
    assert not total.any()


def test_what_is_no_witness_and_no_commutator_is_refused():
    certificate = represent(zoo.group("S3"), "liquid-s4").to_json()
    for part in ("A", "B", "vectors"):
        with pytest.raises(RejectedCertificate):
            recheck(changed(certificate, (part, 1, 0), lambda weight: str(Fraction(weight) + 1)))
    with pytest.raises(RejectedCertificate, match="A is not diagonal"):
        recheck({**certificate, "family": "liquid-s4-diagonal"})
    certificate = represent(zoo.subtraction(3), "liquid-s4").to_json()
    with pytest.raises(RejectedCertificate, match="is no commutator"):
        recheck(changed(certificate, ("terms", 0, "words"), lambda words: [*words[:3], words[4], words[3], *words[5:]]))
