"""Blocks with columns of 1-norm at most 1, compared with all signed permutations."""

from functools import cache
from itertools import permutations, product
from math import lcm

import numpy as np
import pytest

from experiments import signed_blocks as columns
from experiments.signed_blocks import signed_blocks
from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.families.block_sizes import minimal_block


def test_named_groups():
    sizes = {"Z5": 5, "Z10": 5, "S3": 3, "S4": 3, "A4": 3, "A5": 5, "Q8": 4, "D4": 2, "Z2xZ3xS3": 3}
    assert {name: signed_blocks(zoo.group(name)).upper for name in sizes} == sizes
    for name in ("S3", "S4", "Z12"):
        assert signed_blocks(zoo.group(name)).lower >= minimal_block(zoo.group(name), "Q").lower
    assert signed_blocks(zoo.flip_flop()) is None
    assert signed_blocks(MooreMachine([[0]], ["only"])).upper == 0


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
    assert signed_blocks(zoo.sum_mod(n)).upper == least


def test_groups_beyond_the_limits_leave_an_interval(monkeypatch):
    large = signed_blocks(zoo.sum_mod(211))
    assert (large.lower, large.upper) == (1, 211)
    assert large.note == "the group has more than 200 elements"
    monkeypatch.setattr(columns, "MAX_SUBGROUPS", 10)
    many = signed_blocks(zoo.group("A5"))
    assert (many.lower, many.upper) == (5, 60)
    assert many.note == "the group has more than 10 subgroups"
