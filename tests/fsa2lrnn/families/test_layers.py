"""Householder products and Liquid-S4: as many factors as T7 says, the weights replayed exactly, honest unknowns."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from experiments.witness_networks import lower_witness
from fsa2lrnn import MooreMachine, Proved, prove_equivalent, zoo
from fsa2lrnn.families import (
    HouseholderWitness,
    Impossibility,
    LiquidWitness,
    RejectedCertificate,
    Unknown,
    recheck,
    represent,
)
from fsa2lrnn.families.closure import obstruction
from fsa2lrnn.families.householder import transpositions
from fsa2lrnn.families.identities import Family
from fsa2lrnn.families.liquid import dense_liquid
from fsa2lrnn.nn.scans import METHODS
from fsa2lrnn.testing.strategies import machines, permutation_machines
from tests.fsa2lrnn.families.conftest import changed, rejected


def product_of(keys, n):
    A = np.eye(n, dtype=int)
    for key in keys:
        k = np.array(key)
        A = (np.eye(n, dtype=int) - np.outer(k, k)) @ A
    return A


@given(st.integers(1, 8).flatmap(lambda n: st.permutations(range(n))))
def test_a_permutation_takes_n_minus_its_cycles_factors(permutation):
    image = np.array(permutation)
    n = len(image)
    P = np.zeros((n, n), int)
    P[image, np.arange(n)] = 1
    exchanges = transpositions(image)
    assert len(exchanges) == np.linalg.matrix_rank(P - np.eye(n))
    keys = [np.eye(n, dtype=int)[x] - np.eye(n, dtype=int)[y] for x, y in exchanges]
    assert np.array_equal(product_of(keys, n), P)


@pytest.mark.long
@settings(max_examples=settings.default.max_examples // 10)  # networks take a while
@given(permutation_machines(max_states=5))
def test_permutation_machines_are_proved_by_running_them(machine):
    witness = represent(machine, "householder")
    assert isinstance(witness, HouseholderWitness)
    witness.check()
    verdict = prove_equivalent(lower_witness(witness), machine)
    assert isinstance(verdict, Proved)
    assert verdict.scans == (("sequential",) if witness.at else tuple(METHODS))  # of unit vectors, all scans are known


@pytest.mark.parametrize(("task", "factors"), [
    ("sum_mod(5)", 4), ("group(S3)", 2), ("group(S4)", 3), ("group(Z2xZ3xS3)", 2), ("parity", 1),
    ("length_mod(3)", 2),
])  # fmt: skip
def test_factor_counts(task, factors):
    """In integers: S₄ moves four points, where 24 states would take 18 factors. Other coordinates take fewer yet."""
    witness = represent(zoo.from_task(task), "householder")
    assert witness.n_factors == factors
    witness.check()


def test_points_of_a_group_and_permutations_with_resets_run_exactly():
    witness = represent(MooreMachine([[0]], ["only"]), "householder")
    assert (witness.n_factors, lower_witness(witness).transduce([0])) == (0, ["only"])
    witness = represent(zoo.group("S4"), "householder(3)")
    assert (witness.n_factors, witness.dimension) == (3, 4)
    assert isinstance(prove_equivalent(lower_witness(witness), zoo.group("S4")), Proved)
    for machine in (zoo.flip_flop(), zoo.resettable_counter(4)):
        witness = represent(machine, "householder")
        witness.check()
        assert witness.n_factors == witness.dimension  # a reset erases every direction
        assert isinstance(prove_equivalent(lower_witness(witness), machine), Proved)


WRONG = r"the factors of letter|a beta outside \[0, 2\]"


@pytest.mark.parametrize(("task", "path", "change", "fault"), [
    ("resettable_counter(4)", ("keys", 0), lambda keys: keys[:-1], WRONG),
    ("resettable_counter(4)", ("keys", 0), lambda keys: keys[::-1], WRONG),
    ("resettable_counter(4)", ("keys", 0, 0, 0), lambda entry: entry + 1, WRONG),
    ("resettable_counter(4)", ("shifts", 1, 0), lambda entry: entry + 1, WRONG),
    ("group(S3)", ("vectors", 0), lambda _: [7, 8, 9], "do not lead from state"),
    ("group(S3)", ("vectors",), lambda vectors: [vectors[1], *vectors[1:]], "the same vector"),
    ("group(S3)", ("vectors", 0), lambda vector: vector[1:], "unlike lengths"),
    ("group(S3)", ("vectors", 0, 0), float, "not of integers"),
    ("group(S3)", ("vectors",), lambda vectors: vectors[:-1], "of other states"),
])  # fmt: skip
def test_a_wrong_witness_is_refused(task, path, change, fault):
    certificate = represent(zoo.from_task(task), "householder").to_json()
    rejected(changed(certificate, path, change), fault)
    if task == "group(S3)":
        rejected({**certificate, "sink": 0}, "not both")


@pytest.mark.long
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


def test_liquid_s4_of_s3_and_the_hypothesis_that_t6_needs():
    machine = zoo.group("S3")
    assert isinstance(represent(machine, "diagonal-complex"), Impossibility)
    witness = represent(machine, "liquid-s4")
    assert isinstance(witness, LiquidWitness)
    assert not witness.is_exact  # thirds among the weights
    assert "representable" in witness.check()
    word = ["(1,2)", "(1,2,3)", "(1,2)"] * 40
    assert lower_witness(witness).transduce(word) == machine.transduce(word)
    # On Z the difference of set and reset vanishes, so it is diagonalisable there; on ℚ² it is nilpotent.
    machine = MooreMachine([[1, 1], [0, 0]], [0, 1], alphabet=["set", "reset"])
    difference = np.array([[0, 0], [1, 1]]) - np.array([[1, 1], [0, 0]])
    assert not (difference @ [1, -1]).any()
    assert difference.any()
    assert not (difference @ difference).any()
    assert isinstance(represent(machine, "liquid-s4"), Unknown)


@pytest.mark.parametrize(("machine", "family", "reason"), [
    (zoo.sum_mod(3), "liquid-s4", "no rational eigenbasis"),
    (zoo.sum_mod(3), "liquid-s4-diagonal", "rotations"),
    (zoo.flip_flop(), "liquid-s4-diagonal", "letters of one multiplier and unlike shifts"),
    (zoo.cerny(4), "liquid-s4", "no rational eigenbasis|do not commute"),
    (zoo.elevator(3), "householder", "letter 'u' is neither a permutation nor a reset"),
])  # fmt: skip
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


def test_what_is_no_witness_and_no_commutator_is_refused():
    certificate = represent(zoo.group("S3"), "liquid-s4").to_json()
    for part in ("A", "B", "vectors"):
        with pytest.raises(RejectedCertificate):
            recheck(changed(certificate, (part, 1, 0), lambda weight: str(Fraction(weight) + 1)))
    with pytest.raises(RejectedCertificate, match="A is not diagonal"):
        recheck({**certificate, "family": "liquid-s4-diagonal"})
    certificate = represent(zoo.subtraction(3), "liquid-s4").to_json()
    with pytest.raises(RejectedCertificate, match="is not a commutator"):
        recheck(changed(certificate, ("terms", 0, "words"), lambda words: [*words[:3], words[4], words[3], *words[5:]]))
