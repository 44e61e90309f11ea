"""Which block sizes suffice, and the answers."""

import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import lcm

import numpy as np
import pytest
from flint import fmpq_mat

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.extra.block_size import minimal_block
from fsa2lrnn.extra.block_size import sentences as columns
from fsa2lrnn.extra.block_size.blocks import field_block, rational_block, whole_block
from fsa2lrnn.extra.block_size.chain import chain
from fsa2lrnn.extra.block_size.constituents import constituents
from fsa2lrnn.extra.block_size.kinds import endomorphism, is_hom
from fsa2lrnn.extra.block_size.late import least
from fsa2lrnn.extra.block_size.sentences import signed_blocks
from fsa2lrnn.families import RejectedCertificate, linear
from fsa2lrnn.families.modules import functions_module

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


def test_complex_blocks_fields_without_a_proof_and_leaving_functions():
    (block,) = minimal_block(zoo.sum_mod(3), "C").blocks
    assert (block.size, block.real_size) == (1, 2)
    assert_follows(block, zoo.sum_mod(3), 1e-12)
    machine = zoo.sum_mod(29)
    answer = minimal_block(machine, "R")
    assert answer.value == 2
    assert {(block.size, block.real_size) for block in answer.blocks} == {(1, 2)}
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


def test_homomorphisms_and_named_groups():
    module = functions_module(zoo.group("S3").delta)
    kind = next(k for k in constituents(module, lambda: None) if k.dimension == 2)
    assert not is_hom(kind.standard, module, fmpq_mat(1, 5, [1, 0, 0, 0, 0]))
    five = functions_module(zoo.sum_mod(5).delta)
    field = constituents(five, lambda: None)[0]
    turn = endomorphism(field.standard, field.commutant.generator)
    assert all(turn * a == a * turn for a in field.standard.module.letters)
    assert turn**5 == linear.identity(4)
    sizes = {"Z5": 5, "Z10": 5, "S3": 3, "S4": 3, "A4": 3, "A5": 5, "Q8": 4, "D4": 2, "Z2xZ3xS3": 3}
    assert {name: signed_blocks(zoo.group(name)).value for name in sizes} == sizes
    for name in ("S3", "S4", "Q8", "Z12"):
        assert signed_blocks(zoo.group(name)).lower >= minimal_block(zoo.group(name), "Q").lower
    assert signed_blocks(zoo.flip_flop()) is None
    assert signed_blocks(machine_of([[0]])).value == 0


# The plain chain stops one below the truth on each, the second for the sake of a parameter.
LATE = [
    [[1, 0, 3, 4, 4], [2, 2, 2, 2, 2], [0, 1, 2, 3, 3]],
    [[1, 3, 1, 1], [2, 2, 2, 0]],
    [[1, 3, 2, 5, 4, 5, 6], [2, 2, 2, 2, 2, 2, 2], [0, 4, 5, 3, 4, 6, 6]],
    [[0, 3, 1, 3], [1, 3, 2, 3], [2, 2, 2, 2]],
]


@pytest.mark.parametrize("delta", LATE)
def test_bounds_meet_where_the_plain_chain_stops_short(delta):
    machine = machine_of(delta).minimise()
    module = functions_module(machine.delta)
    kinds = constituents(module, lambda: None)
    found = chain(module, kinds, "Q", lambda: None)
    sizes = [0, *(copy.base for copy in found.copies)]
    late = [copy for copy in found.copies if copy.late is not None and copy.level > least(None, kinds[copy.kind], "Q")]
    assert late
    assert sizes
    answer = minimal_block(machine, "Q")
    assert answer.value is not None
    assert any(copy["late"] for copy in answer.impossible["copies"])
    answer.check()


@cache
def periods(b):
    """How long the orbits of vectors are under the signed permutations of b axes: by all of them."""
    found = set()
    for order, signs in product(permutations(range(b)), product((1, -1), repeat=b)):
        matrix = np.zeros((b, b), int)
        matrix[range(b), order] = signs
        for start in product((0, 1), repeat=b):
            x, period = np.array(start), 1
            y = matrix @ x
            while not np.array_equal(x, y):
                y, period = matrix @ y, period + 1
            found.add(period)
    return found


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8, 12])
def test_cyclic_groups_need_what_signed_permutations_show(n):
    """One generator turns each block by a signed permutation; n states take orbits whose lengths have n as multiple."""
    least = next(b for b in range(1, 5) if lcm(*(p for p in periods(b) if n % p == 0)) == n)
    assert signed_blocks(zoo.sum_mod(n)).value == least


def test_groups_beyond_the_limits_leave_an_interval(monkeypatch):
    large = signed_blocks(zoo.sum_mod(211))
    assert (large.lower, large.upper, large.value) == (1, 211, None)
    assert large.note == "the group has more than 200 elements"
    monkeypatch.setattr(columns, "MAX_SUBGROUPS", 10)
    many = signed_blocks(zoo.group("A5"))
    assert (many.lower, many.upper) == (5, 60)
    assert many.note == "the group has more than 10 subgroups"
