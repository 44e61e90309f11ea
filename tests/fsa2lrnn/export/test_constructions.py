"""Constructions in exact numbers: which is taken, what its heads hold, and how its plan becomes weights."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.export.constructions import construct, reflections, register
from fsa2lrnn.export.gated_delta import mixer
from fsa2lrnn.export.plan import UNIT, StageHead, orbit, side_by_side
from fsa2lrnn.export.stream import layout
from fsa2lrnn.export.transpositions import moves_by_transpositions, transposition_heads, two_sides


def test_heads_side_by_side():
    """Parity of ones beside what was written last: neither is both a group and a reset."""
    delta = [[2 * parity + bit for parity in range(2) for bit in range(2)] for _ in range(3)]
    delta[0] = [2 * (1 - parity) + bit for parity in range(2) for bit in range(2)]
    delta[1] = [2 * parity for parity in range(2) for _ in range(2)]
    delta[2] = [2 * parity + 1 for parity in range(2) for _ in range(2)]
    plan = construct(MooreMachine(delta, range(4)), has_reflections=True)
    assert plan.how.startswith("one layer, 2 heads side by side: ")
    assert {"a register", "reflections"} == set(plan.how.partition(": ")[2].rpartition(", ")[0].split(", "))


def test_too_many_windows_or_states():
    assert construct(zoo.sum_mod(12), has_reflections=True).how.startswith("a cascade of")
    with pytest.raises(BudgetExceeded, match="more than 1,500 windows"):
        construct(zoo.sum_mod(12), has_reflections=False)
    with pytest.raises(BudgetExceeded, match="5,040 states, and whole models are written for 1,500"):
        construct(zoo.group("S7", "transpositions"), has_reflections=True)


ROOT = Path(__file__).parents[3]


def test_steps_are_the_delta_rule_and_orbits_are_closed():
    k, v = np.array([0.5, 0.5, 0.5, 0.5]), np.array([3.0, 1.0])
    head = StageHead(k[None], v[None], np.ones(1), np.full(1, 2.0), np.ones(4), np.ones(2))
    S = np.arange(8.0).reshape(4, 2)
    assert np.array_equal(head.step(S, 0), (np.eye(4) - 2 * np.outer(k, k)) @ S + 2 * np.outer(k, v))
    found = reflections(zoo.group("S4", "transpositions").delta, 0)
    assert len(found.states) == 24
    for a, row in enumerate(found.table):
        for S, after in zip(found.states, row, strict=True):
            assert np.array_equal(found.head.step(S, a), found.states[after])
    found = numbers(reflections(zoo.group("S5", "transpositions").delta, 0))
    assert np.abs(found[found != 0]).min() > 1e-3


def numbers(found):
    """What becomes weights, in the type that these have."""
    return np.concatenate([found.head.query, found.marks.ravel(), [found.gap]]).astype(np.float32)


OTHER_CPU = """
import sys
from fsa2lrnn import zoo
from fsa2lrnn.export.constructions import reflections
from tests.fsa2lrnn.export.test_constructions import numbers
sys.stdout.buffer.write(numbers(reflections(zoo.group("S5", "transpositions").delta, 0)).tobytes())
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Prescott", "Nehalem", "Haswell"])  # of those that OpenBLAS has code for
def test_a_plan_has_the_same_numbers_on_every_cpu(kind):
    environment = {**os.environ, "OPENBLAS_CORETYPE": kind}
    other = subprocess.run(
        [sys.executable, "-c", OTHER_CPU], env=environment, capture_output=True, check=True, cwd=ROOT
    )
    assert other.stdout == numbers(reflections(zoo.group("S5", "transpositions").delta, 0)).tobytes()


def test_what_never_closes_or_tells_no_outputs_apart_is_refused():
    grows = StageHead(np.ones((1, 1)), np.full((1, 1), UNIT), np.ones(1), np.full(1, 1.5), np.ones(1), np.ones(1))
    with pytest.raises(BudgetExceeded, match="more than 20 states"):
        orbit(grows, limit=20)
    keeps = register(np.array([[0], [0]]))
    with pytest.raises(NotExpressible, match="two outputs"):
        side_by_side(zoo.parity(), [keeps], "nothing")


def test_units_and_places():
    machine = MooreMachine([[0, 0], [1, 1]], ["x", "y"])
    plan = side_by_side(machine, [register(machine.delta)], "a register")
    assert plan.outputs == ("x", "y")
    assert sorted((unit.marks, unit.target) for unit in plan.stages[0].units) == [((1,), 0), ((2,), 1)]
    plan = construct(zoo.ab_star(), True)
    where = layout(plan)
    assert where.marks == (2, 7, 8)
    assert where.symbols == (4, 9)
    assert where.width == 64
    machine = MooreMachine(np.arange(5_000)[:, None] % 2 * np.ones((1, 2), int), [False, True])
    with pytest.raises(NotExpressible, match=r"5,000 letters.* need a hidden size of 5,00.*smaller alphabet"):
        layout(construct(machine, True))


def test_registers_and_resets():
    plan = construct(zoo.parity(), True)
    with pytest.raises(NotExpressible, match="β = 2 is asked for, and this layer reaches 1"):
        mixer(plan, 0, largest_beta=1, kernel=4)
    found = register(zoo.flip_flop().delta)
    assert len(found.states) == 3
    assert register(zoo.parity().delta) is None
    found = reflections(np.array([[1, 0], [0, 1], [0, 0]]), 0)
    assert (len(found.states), found.table.tolist()) == (2, [[1, 0], [0, 1], [0, 0]])


def test_what_is_no_such_component_is_refused():
    for pairs, targets in (([(1, 2), (2, 3), (3, 1)], []), ([(1, 2)], [1, 2]), ([(0, 1), (1, 2)], [0, 2])):
        assert two_sides(4, 0, pairs, targets) is None
    for row in ([1, 2, 0], [1, 0, 3, 2], [0, 0, 1]):
        assert moves_by_transpositions(np.array([row]), 0) is None
        with pytest.raises(ValueError, match="are not transpositions between two sets"):
            transposition_heads(np.array([row]), 0)
