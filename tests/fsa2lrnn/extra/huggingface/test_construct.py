"""Which construction is taken, and what is refused."""

import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.extra.huggingface.construct import construct


@pytest.mark.parametrize(
    ("machine", "how"),
    [
        (zoo.flip_flop(), "one head: a register, 3 matrices"),
        (zoo.group("S3", "transpositions"), "one head: reflections, 6 matrices"),
        (zoo.ab_star(), "a register of 2 values behind windows of 2 letters, in two layers"),
        (zoo.group("Z2xZ2"), "one head: reflections, 4 matrices"),
        (zoo.group("S4"), "a cascade of 4 components, in 3 layers"),
    ],
)
def test_how(machine, how):
    assert construct(machine, has_reflections=True).how == how


def test_heads_side_by_side():
    """Parity of ones beside what was written last: neither is both a group and a reset."""
    delta = [[2 * parity + bit for parity in range(2) for bit in range(2)] for _ in range(3)]
    delta[0] = [2 * (1 - parity) + bit for parity in range(2) for bit in range(2)]
    delta[1] = [2 * parity for parity in range(2) for _ in range(2)]
    delta[2] = [2 * parity + 1 for parity in range(2) for _ in range(2)]
    plan = construct(MooreMachine(delta, range(4)), has_reflections=True)
    assert plan.how.startswith("2 heads side by side: ")
    assert {"a register", "reflections"} == set(plan.how.partition(": ")[2].rpartition(", ")[0].split(", "))


@pytest.mark.parametrize(
    ("machine", "has_reflections"), [(zoo.parity(), False), (zoo.length_mod(29), True), (zoo.group("S3"), False)]
)
def test_what_is_not_known(machine, has_reflections):
    with pytest.raises(NotExpressible, match="no stack of the known constructions was found for this machine of"):
        construct(machine, has_reflections)


def test_too_many_windows_leave_other_constructions():
    """12 letters have 1,728 windows of three, more than are tried; a cascade reads none."""
    assert construct(zoo.sum_mod(12), has_reflections=True).how.startswith("a cascade of")
    with pytest.raises(BudgetExceeded, match="more than 1,500 windows"):
        construct(zoo.sum_mod(12), has_reflections=False)


def test_too_many_states():
    with pytest.raises(BudgetExceeded, match="5,040 states, and whole models are written for 1,500"):
        construct(zoo.group("S7", "transpositions"), has_reflections=True)
