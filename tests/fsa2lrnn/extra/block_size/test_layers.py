"""A given number of layers for permutation machines: series of normal subgroups."""

from itertools import pairwise

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine
from fsa2lrnn.extra.block_size.layers import any_depth, layered


@pytest.mark.parametrize(
    ("name", "field", "sizes"),
    [
        ("S3", "C", (2, 1, 1)),
        ("S3", "R", (2, 2, 2)),
        ("A4", "R", (3, 2, 2)),
        ("S4", "R", (3, 2, 2)),
        ("S4", "C", (None, 2, 1)),
        ("Q8", "R", (None, 1, 1)),
        ("Z12", "Q", (2, 2, 2)),
        pytest.param("A5", "R", (3, 3, 3), marks=pytest.mark.slow),
    ],
)
def test_sizes_by_the_number_of_layers(name, field, sizes):
    assert tuple(layered(zoo.group(name), layers, field).value for layers in (1, 2, 3)) == sizes


@pytest.mark.parametrize("name", ["S3", "A4", "Q8", "D4"])
def test_more_layers_need_no_larger_blocks_and_all_of_them_what_any_depth_needs(name):
    machine = zoo.group(name)
    for field in "CRQ":
        found = [layered(machine, layers, field) for layers in range(1, 6)]
        for one, more in pairwise(found):
            assert more.lower <= one.lower
            assert more.upper <= one.upper
        deep = any_depth(machine, field).value
        assert found[-1].value == deep
        product = 1
        for order in found[-1].orders:
            product *= order
        assert product == machine.n_states


def test_what_is_no_group_and_what_is_too_large():
    with pytest.raises(InvalidMachine, match=r"letter 'a' does not permute the states: take `any_depth`"):
        layered(zoo.ab_star(), 2)
    with pytest.raises(BudgetExceeded, match="has more than 200 elements"):
        layered(zoo.sum_mod(211), 2)
