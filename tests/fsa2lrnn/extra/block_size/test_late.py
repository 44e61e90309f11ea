"""Copies that come late: what every submodule above them holds, against random ones."""

import random

import pytest

from fsa2lrnn.extra.block_size import minimal_block
from fsa2lrnn.extra.block_size.chain import chain
from fsa2lrnn.extra.block_size.constituents import constituents
from fsa2lrnn.extra.block_size.late import least
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import functions_module, spin

from .conftest import machine_of

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


@pytest.mark.parametrize("delta", LATE)
def test_whatever_stands_above_a_late_copy_is_as_large_as_it_says(delta):
    module = functions_module(machine_of(delta).minimise().delta)
    kinds = constituents(module, lambda: None)
    rng = random.Random(0)
    for copy in chain(module, kinds, "Q", lambda: None).copies:
        if copy.late is None:
            continue
        rows = linear.stack([copy.late.function, copy.late.parameters], module.dimension)
        for _ in range(20):
            weights = [rng.choice((-2, -1, 1, 3)), *(rng.randint(-3, 3) for _ in range(rows.nrows() - 1))]
            f = linear.matrix([weights], rows.nrows()) * rows
            assert len(spin(module, f).path) >= copy.late.dimension
