"""Blocks as functions of the state: what letters make of them, in which numbers, and as floats."""

import random
from fractions import Fraction

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size import minimal_block
from fsa2lrnn.extra.block_size.blocks import StateBlock, field_block, rational_block, whole_block
from fsa2lrnn.families import RejectedCertificate, linear, recheck
from fsa2lrnn.families.modules import functions_module
from fsa2lrnn.families.verdicts import certificate_header

from .conftest import machine_of, random_machine


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
    assert max(block.size for block in answer.blocks) == size
    assert not all(block.is_rational for block in answer.blocks)
    for block in answer.blocks:
        assert_follows(block, answer.machine, 1e-12)


def test_complex_blocks_are_real_ones_of_two_parts():
    (block,) = minimal_block(zoo.sum_mod(3), "C").blocks
    assert (block.size, block.real_size) == (1, 2)
    assert_follows(block, zoo.sum_mod(3), 1e-12)


def test_a_real_field_without_a_short_proof_is_not_needed():
    machine = zoo.sum_mod(29)
    answer = minimal_block(machine, "R")
    assert answer.value == 2
    assert {(block.size, block.real_size) for block in answer.blocks} == {(1, 2)}
    for block in answer.blocks:
        assert_follows(block, machine, 1e-12)


def test_rational_functions_within_a_complex_block_count_once():
    """1 for the sign and ζ for the turn of Z6, side by side over the field of ζ."""
    one, zero = (1, 0), (0, 0)
    powers = [one, (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1)]  # of ζ, a root of t² − t + 1
    less = [tuple(x - y for x, y in zip(power, one, strict=True)) for power in powers]
    functions = (tuple(zero if q % 2 == 0 else one for q in range(6)), tuple(less))
    matrices = ((((-1, 0), zero), (zero, (0, 1))),)
    block = StateBlock((1, -1, 1), functions, matrices, ((one, (-1, 1)),))
    assert (block.size, block.real_size) == (2, 3)
    machine = machine_of([[1, 2, 3, 4, 5, 0]])
    assert_follows(block, machine, 1e-12)
    for size, is_enough in ((3, True), (2, False)):
        header = certificate_header(machine, f"block({size})", "representable")
        certificate = {**header, "field": "R", "blocks": [block.to_json()]}
        if is_enough:
            recheck(certificate)
        else:
            with pytest.raises(RejectedCertificate, match="a block has size 3, more than 2"):
                recheck(certificate)


def test_functions_that_letters_lead_out_of_are_refused():
    machine = zoo.sum_mod(4)
    module = functions_module(machine.delta)
    one_state = linear.matrix([[1, 0, 0]], 3)
    with pytest.raises(ArithmeticError, match="not closed under the letters"):
        field_block(module, [one_state], (0, 1), machine.delta.tolist())
    twice = linear.matrix([[1, 0, 1], [2, 0, 2]], 3)
    with pytest.raises(ArithmeticError, match="2 functions over a field of degree 1 span 1 dimensions"):
        field_block(module, [twice], (0, 1), machine.delta.tolist())


def test_all_functions_together_are_a_block_of_every_machine():
    machine = zoo.elevator(3)
    block = whole_block(machine.delta.tolist())
    assert block.size == machine.n_states - 1
    assert_follows(block, machine, 0)


def test_a_basis_is_chosen_in_which_fractions_vanish():
    machine = zoo.sum_mod(2)
    block = rational_block(functions_module(machine.delta), linear.matrix([[6]], 1), machine.delta.tolist())
    assert [[int(str(x[0])) for x in row] for row in block.functions] == [[0, 1]]
