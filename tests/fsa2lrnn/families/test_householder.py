"""Householder products: as many factors as T7 says, exact, and running."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.families import HouseholderWitness, Unknown, represent
from fsa2lrnn.families.householder import transpositions
from fsa2lrnn.lower import lower_witness
from fsa2lrnn.lrnn.scans import METHODS
from fsa2lrnn.testing.strategies import permutation_machines
from fsa2lrnn.verification import Proved, prove_equivalent
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


def test_points_of_a_group_and_permutations_with_resets_run_exactly():
    witness = represent(MooreMachine([[0]], ["only"]), "householder")
    assert witness.n_factors == 0
    assert lower_witness(witness).transduce([0]) == ["only"]
    witness = represent(zoo.group("S4"), "householder(3)")
    assert (witness.n_factors, witness.dimension) == (3, 4)
    assert isinstance(prove_equivalent(lower_witness(witness), zoo.group("S4")), Proved)
    for machine in (zoo.flip_flop(), zoo.resettable_counter(4)):
        witness = represent(machine, "householder")
        witness.check()
        assert witness.n_factors == witness.dimension  # a reset erases every direction
        assert isinstance(prove_equivalent(lower_witness(witness), machine), Proved)


def test_other_letters_are_unknown_by_name():
    verdict = represent(zoo.elevator(3), "householder")
    assert isinstance(verdict, Unknown)
    assert verdict.explain().startswith("letter 'u' is neither a permutation nor a reset")


WRONG = r"the factors of letter|a beta outside \[0, 2\]"


@pytest.mark.parametrize(
    ("task", "path", "change", "fault"),
    [
        ("resettable_counter(4)", ("keys", 0), lambda keys: keys[:-1], WRONG),
        ("resettable_counter(4)", ("keys", 0), lambda keys: keys[::-1], WRONG),
        ("resettable_counter(4)", ("keys", 0, 0, 0), lambda entry: entry + 1, WRONG),
        ("resettable_counter(4)", ("shifts", 1, 0), lambda entry: entry + 1, WRONG),
        ("group(S3)", ("vectors", 0), lambda _: [7, 8, 9], "do not lead from state"),
        ("group(S3)", ("vectors",), lambda vectors: [vectors[1], *vectors[1:]], "the same vector"),
        ("group(S3)", ("vectors", 0), lambda vector: vector[1:], "unlike lengths"),
        ("group(S3)", ("vectors", 0, 0), float, "not of integers"),
        ("group(S3)", ("vectors",), lambda vectors: vectors[:-1], "of other states"),
    ],
)
def test_a_wrong_witness_is_refused(task, path, change, fault):
    certificate = represent(zoo.from_task(task), "householder").to_json()
    rejected(changed(certificate, path, change), fault)
    if task == "group(S3)":
        rejected({**certificate, "sink": 0}, "not both")
