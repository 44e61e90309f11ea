"""Any number of layers: the simple groups in the monoid decide."""

import random

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size import depth, minimal_block
from fsa2lrnn.extra.block_size.depth import DEGREES, any_depth, degree
from tests.fsa2lrnn.families.conftest import projective_line

from .conftest import machine_of, random_machine


@pytest.mark.parametrize(
    ("task", "sizes"),
    [
        ("dyck(2,3)", (1, 1, 1)),
        ("even_pair(5)", (1, 1, 1)),
        ("group(Q8)", (1, 1, 1)),
        ("sum_mod(7)", (1, 2, 6)),
        ("mod_arith(3)", (1, 2, 2)),
        ("group(S4)", (1, 2, 2)),
        ("group(A5)", (2, 3, 4)),
        ("cerny(5)", (1, 2, 4)),
    ],
)
def test_named_machines(task, sizes):
    machine = zoo.from_task(task)
    found = tuple(any_depth(machine, field) for field in "CRQ")
    assert tuple(answer.value for answer in found) == sizes


@pytest.mark.parametrize("task", ["dyck(1,4)", "contains(abaab)", "elevator(6)", "ab_star"])
def test_machines_without_groups_take_lanes(task):
    found = any_depth(zoo.from_task(task), "Q")
    assert (found.factors, found.value) == ((), 1)


def test_one_layer_takes_no_less():
    rng = random.Random(0)
    for _ in range(15):
        machine = random_machine(rng, 6)
        for field in "CRQ":
            assert any_depth(machine, field).lower <= max(1, minimal_block(machine, field).upper)


def test_projective_lines():
    seven = any_depth(machine_of(projective_line(7)), "R")
    assert (seven.value, seven.factors) == (6, ("PSL(2,7)",))


def test_a_simple_group_that_the_table_lacks():
    eleven = any_depth(machine_of(projective_line(11)), "R")
    assert (eleven.lower, eleven.upper) == (3, 11)
    assert eleven.note == "the degrees of the simple of order 660 are not in the table"


def test_degrees_of_groups_of_matrices_bound_those_of_the_table():
    """Real matrices are complex ones, rational ones real; a real group of degree d holds no element of prime order p
    over the rationals unless p − 1 ≤ d."""
    for name, primes in {"A5": (3, 5), "PSL(2,7)": (3, 7), "A6": (3, 5)}.items():
        d = DEGREES[name]
        assert d["C"] <= d["R"] <= d["Q"]
        assert d["Q"] >= max(primes) - 1
    assert degree("Z2", "Q") == (1, 1)


def test_groups_beyond_the_limits_leave_an_interval(monkeypatch):
    machine = machine_of([[*range(1, 8), 0], [1, 0, *range(2, 8)]])  # S8
    found = any_depth(machine)
    assert (found.lower, found.upper) == (1, 7)
    assert found.note == "the group of an image of 8 states is too large to be listed"
    monkeypatch.setattr(depth, "MAX_SETS", 4)
    few = any_depth(zoo.cerny(6))
    assert few.lower <= 2 <= few.upper
    assert few.note


def test_a_group_in_a_corner_of_the_monoid_counts():
    """Z5 on five states that a letter folds all others onto."""
    turn = [1, 2, 3, 4, 0, 5, 6]
    fold = [0, 1, 2, 3, 4, 0, 1]
    move = [5, 6, 2, 3, 4, 5, 6]
    found = any_depth(machine_of(np.array([turn, fold, move])), "Q")
    assert "Z5" in found.factors
    assert found.value == 4
