"""Which block sizes suffice, and the answers."""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.families import RejectedCertificate, linear, recheck
from fsa2lrnn.families.block_sizes import minimal_block
from fsa2lrnn.families.block_sizes.constituents import constituents
from fsa2lrnn.families.block_sizes.factor_bounds import factor_bounds
from fsa2lrnn.families.block_sizes.state_blocks import field_block, rational_block, whole_block
from fsa2lrnn.families.function_modules import functions_module

from .conftest import KNOWN, metacyclic, random_machine


def assert_follows(block, machine, tolerance):
    """Float64 tables move float64 vectors as the machine moves its states."""
    functions, matrices, shifts = block.rounded()
    assert functions.shape == (block.real_size, machine.n_states)
    for a, row in enumerate(machine.delta):
        moved = matrices[a] @ functions + shifts[a][:, None]
        np.testing.assert_allclose(moved, functions[:, row], rtol=0, atol=tolerance)


def test_rational_blocks_are_integers_and_follow_the_machine():
    rng = random.Random(0)
    for _ in range(15):
        machine = random_machine(rng, 7)
        answer = minimal_block(machine, "Q")
        for block in answer.blocks:
            assert block.is_rational
            numbers = [x for part in (*block.matrices, block.functions, block.shifts) for row in part for x in row]
            assert all(Fraction(str(c)).denominator == 1 for number in np.ravel(numbers) for c in [number])
            assert_follows(block, answer.machine, 0)
            assert not any(number[0] for number in (row[answer.machine.start] for row in block.functions))


@pytest.mark.parametrize(("task", "size"), [("sum_mod(5)", 2), ("group(A5)", 3), ("sum_mod(7)", 2), ("group(D5)", 2)])
def test_blocks_over_a_real_field_follow_the_machine_up_to_rounding(task, size):
    answer = minimal_block(zoo.from_task(task), "R")
    assert max(block.real_size for block in answer.blocks) == size
    assert not all(block.is_rational for block in answer.blocks)
    for block in answer.blocks:
        assert_follows(block, answer.machine, 1e-12)


@pytest.mark.long
def test_complex_blocks_fields_without_a_proof_and_leaving_functions():
    (block,) = minimal_block(zoo.sum_mod(3), "C").blocks
    assert (block.size, block.real_size) == (1, 2)
    assert_follows(block, zoo.sum_mod(3), 1e-12)
    machine = zoo.sum_mod(29)
    answer = minimal_block(machine, "R")
    assert (answer.value, {(block.size, block.real_size) for block in answer.blocks}) == (2, {(1, 2)})
    for block in answer.blocks:
        assert_follows(block, machine, 1e-12)
    machine = zoo.sum_mod(4)
    module = functions_module(machine.delta)
    one_state = linear.matrix([[1, 0, 0]], 3)
    with pytest.raises(ArithmeticError, match="not closed under the letters"):
        field_block(module, [one_state], (0, 1), machine.delta.tolist())
    twice = linear.matrix([[1, 0, 1], [2, 0, 2]], 3)
    with pytest.raises(ArithmeticError, match="2 functions over a field of degree 1 span 1 dimensions"):
        field_block(module, [twice], (0, 1), machine.delta.tolist())


def test_answers_are_rechecked_and_name_both_bounds():
    machine = zoo.elevator(3)
    block = whole_block(machine.delta.tolist())
    assert block.size == machine.n_states - 1
    assert_follows(block, machine, 0)
    machine = zoo.sum_mod(2)
    block = rational_block(functions_module(machine.delta), linear.matrix([[6]], 1), machine.delta.tolist())
    assert [[int(str(x[0])) for x in row] for row in block.functions] == [[0, 1]]
    answer = minimal_block(zoo.sum_mod(5), "R")
    assert answer.check() == (
        "representable: one layer of real blocks of size 2 represents this machine, by blocks of sizes 2; "
        "impossible: no layer of real blocks of size 1 represents this machine, states 0 and 1 would share one vector"
    )
    assert minimal_block(MooreMachine([[0]], ["only"]), "Q").value == 0
    answer, other = minimal_block(zoo.group("S3"), "R"), minimal_block(zoo.tomita(3), "R")
    with pytest.raises(RejectedCertificate):
        replace(answer, machine=zoo.elevator(6)).check()
    with pytest.raises(RejectedCertificate):
        replace(answer, found=other.found).check()
    answer = minimal_block(zoo.random_dfa(300, 2, seed=0, minimal=True))
    assert answer.value is None
    assert answer.explain() == (
        f"real blocks of size {answer.upper} do, of less than 1 don't; between: {answer.machine.n_states} states are "
        "more than the 200 for which submodules are looked for"
    )


def kinds_of(machine):
    return constituents(functions_module(machine.minimise().delta), lambda: None)


@pytest.mark.parametrize(("machine", "expected"), [
    (zoo.group("S4"), [(1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 3, 1), (3, 3, 3, 1)]),
    (zoo.group("A5"), [(3, 3, 6, 2), (4, 4, 4, 1), (5, 5, 5, 1)]),
    (zoo.sum_mod(12), [(1, 1, 1, 1), (1, 2, 2, 2), (1, 2, 2, 2), (1, 2, 2, 2), (1, 2, 4, 4)]),
    (metacyclic(7, 3, 2), [(1, 2, 2, 2), (3, 6, 6, 2)]),
    (zoo.cerny(6), [(5, 5, 5, 1)]),
    (zoo.shift_register(3), [(1, 1, 1, 1)]),
])  # fmt: skip
def test_weights_over_the_three_fields_and_what_commutes(machine, expected):
    found = [(*(kind.weight(field) for field in "CRQ"), kind.degree) for kind in kinds_of(machine)]
    assert sorted(found) == sorted(expected)


def test_quaternions_commute_with_the_letters_of_q8():
    found = [(*(kind.weight(field) for field in "CRQ"), kind.quaternion is None) for kind in kinds_of(zoo.group("Q8"))]
    assert sorted(found) == [(1, 1, 1, True), (1, 1, 1, True), (1, 1, 1, True), (2, 4, 4, False)]
    for field, size in (("C", 2), ("R", 4), ("Q", 4)):
        answer = minimal_block(zoo.group("Q8"), field)
        assert answer.value == size
        answer.check()
    *others, last = sorted(answer.impossible["kinds"], key=lambda kind: "quaternion" in kind)
    first = [1, 0, 0, 0]
    for changed, fault in (
        ({"quaternion": last["generator"]}, "do not anticommute"),
        ({"quaternion": [0] * 4}, "a second quaternion is not −b"),
        ({"quaternion": first}, "a second quaternion is not −b"),
        ({"quaternion": [1, *last["quaternion"][1:]]}, "a second quaternion is not −b"),
        ({"polynomial": [-2, 0, 1], "generator": first}, "does not satisfy its polynomial"),
    ):
        with pytest.raises(RejectedCertificate, match=fault):
            recheck({**answer.impossible, "kinds": [*others, {**last, **changed}]})
    field = {name: part for name, part in last.items() if name != "quaternion"}
    with pytest.raises(RejectedCertificate, match="kills more than it should"):
        recheck({**answer.impossible, "kinds": [*others, field]})


@pytest.mark.parametrize("source", KNOWN)
def test_named_machines(source):
    lower, upper = KNOWN[source][3]
    found = factor_bounds(zoo.from_task(source))
    assert (found.lower, found.upper) == (lower, upper)
    if found.impossible is not None:
        kind = "householder layer" if lower is None else f"layer of products of {lower - 1} "
        assert recheck(found.impossible).startswith(f"impossible: no {kind}")
    if found.heads:
        assert recheck(found.to_json()).startswith("representable: ")
