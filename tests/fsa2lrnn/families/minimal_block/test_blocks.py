"""Blocks as functions of the state: what letters make of them, in which numbers, and as floats."""

import random
from fractions import Fraction

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.families.minimal_block import linear, minimal_block
from fsa2lrnn.families.minimal_block.blocks import field_block, rational_block, whole_block
from fsa2lrnn.families.minimal_block.modules import functions_module

from .conftest import random_machine


def assert_follows(block, machine, tolerance):
    """Float64 tables move float64 vectors as the machine moves its states."""
    functions, matrices, shifts = block.rounded()
    assert functions.shape == (block.size, machine.n_states)
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


def test_complex_blocks_have_no_floats():
    (block,) = minimal_block(zoo.sum_mod(3), "C").blocks
    assert block.size == 1
    with pytest.raises(NotExpressible, match="has no real root: these blocks are complex, take real ones"):
        block.rounded()


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
