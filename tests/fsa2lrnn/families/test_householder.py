"""Householder products: as many factors as T7 says, exact, and running."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.families import HouseholderWitness, RejectedCertificate, Unknown, recheck, represent
from fsa2lrnn.families.householder import transpositions
from fsa2lrnn.lower import lower_witness
from fsa2lrnn.lrnn.scans import METHODS
from fsa2lrnn.testing.strategies import permutation_machines
from fsa2lrnn.verification import Proved, prove_equivalent


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


@settings(max_examples=settings.default.max_examples // 10)  # networks take a while
@given(permutation_machines(max_states=5))
def test_permutation_machines_are_proved_by_running_them(machine):
    witness = represent(machine, "householder")
    assert isinstance(witness, HouseholderWitness)
    witness.check()
    verdict = prove_equivalent(lower_witness(witness), machine)
    assert isinstance(verdict, Proved)
    assert verdict.scans == (("sequential",) if witness.at else tuple(METHODS))  # of unit vectors, all scans are known


@pytest.mark.parametrize(
    ("task", "factors"),
    [
        ("sum_mod(5)", 4), ("group(S3)", 2), ("group(S4)", 3), ("group(Z2xZ3xS3)", 2), ("parity", 1),
        ("length_mod(3)", 2),
    ],
)  # fmt: skip
def test_factor_counts(task, factors):
    """In integers: S₄ moves four points, where 24 states would take 18 factors. Other coordinates take fewer yet."""
    witness = represent(zoo.from_task(task), "householder")
    assert witness.n_factors == factors
    witness.check()


def test_points_of_a_group_run_exactly():
    machine = zoo.group("S4")
    witness = represent(machine, "householder(3)")
    assert (witness.n_factors, witness.dimension) == (3, 4)
    assert isinstance(prove_equivalent(lower_witness(witness), machine), Proved)


def test_permutations_and_resets_together():
    for machine in (zoo.flip_flop(), zoo.resettable_counter(4)):
        witness = represent(machine, "householder")
        witness.check()
        assert witness.n_factors == witness.dimension  # a reset erases every direction
        assert isinstance(prove_equivalent(lower_witness(witness), machine), Proved)


def test_other_letters_are_unknown_by_name():
    verdict = represent(zoo.elevator(3), "householder")
    assert isinstance(verdict, Unknown)
    assert verdict.explain().startswith("letter 'u' is neither a permutation nor a reset")


@pytest.mark.parametrize("change", ["drop a factor", "swap two factors", "change a key", "change a shift"])
def test_a_wrong_witness_is_refused(change):
    certificate = represent(zoo.resettable_counter(4), "householder").to_json()
    if change == "drop a factor":
        certificate["keys"][0].pop()
    elif change == "swap two factors":
        certificate["keys"][0].reverse()
    elif change == "change a key":
        certificate["keys"][0][0][0] += 1
    else:
        certificate["shifts"][1][0] += 1
    with pytest.raises(RejectedCertificate, match=r"the factors of letter|a beta outside \[0, 2\]"):
        recheck(certificate)


@pytest.mark.parametrize("change", ["vector", "two alike", "lengths", "number", "count", "sink"])
def test_vectors_that_letters_do_not_move_so_are_refused(change):
    certificate = represent(zoo.group("S3"), "householder").to_json()
    vectors = certificate["vectors"]
    expected = {
        "vector": "do not lead from state", "two alike": "the same vector", "lengths": "unlike lengths",
        "number": "not of integers", "count": "of other states", "sink": "not both",
    }  # fmt: skip
    if change == "vector":
        vectors[0] = [7, 8, 9]
    elif change == "two alike":
        vectors[0] = vectors[1]
    elif change == "lengths":
        vectors[0] = vectors[0][1:]
    elif change == "number":
        vectors[0][0] = float(vectors[0][0])
    elif change == "count":
        vectors.pop()
    else:
        certificate["sink"] = 0
    with pytest.raises(RejectedCertificate, match=expected[change]):
        recheck(certificate)


def test_a_machine_of_identities_needs_no_factor():
    witness = represent(MooreMachine([[0]], ["only"]), "householder")
    assert witness.n_factors == 0
    assert lower_witness(witness).transduce([0]) == ["only"]
