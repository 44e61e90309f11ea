"""Fields, constituents and commutants."""

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import recheck
from fsa2lrnn.families.block_sizes import minimal_block
from fsa2lrnn.families.block_sizes.constituents import constituents
from fsa2lrnn.families.block_sizes.factor_bounds import factor_bounds
from fsa2lrnn.families.function_modules import functions_module

from .conftest import KNOWN, metacyclic


def kinds_of(machine):
    return constituents(functions_module(machine.minimise().delta), lambda: None)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (zoo.group("S4"), [(1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 3, 1), (3, 3, 3, 1)]),
        (zoo.group("A5"), [(3, 3, 6, 2), (4, 4, 4, 1), (5, 5, 5, 1)]),
        (zoo.sum_mod(12), [(1, 1, 1, 1), (1, 2, 2, 2), (1, 2, 2, 2), (1, 2, 2, 2), (1, 2, 4, 4)]),
        (metacyclic(7, 3, 2), [(1, 2, 2, 2), (3, 6, 6, 2)]),
        (zoo.cerny(6), [(5, 5, 5, 1)]),
        (zoo.shift_register(3), [(1, 1, 1, 1)]),
    ],
)
def test_weights_over_the_three_fields_and_what_commutes(machine, expected):
    found = [(*(kind.weight(field) for field in "CRQ"), kind.degree) for kind in kinds_of(machine)]
    assert sorted(found) == sorted(expected)


def test_quaternions_leave_an_interval():
    assert kinds_of(zoo.group("Q8")) is None
    answer = minimal_block(zoo.group("Q8"), "C")
    assert (answer.lower, answer.upper) == (1, 7)
    assert answer.note == "some constituent of the functions of the state was neither split nor proved irreducible"
    answer.check()


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
