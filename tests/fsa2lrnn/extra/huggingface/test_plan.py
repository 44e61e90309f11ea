"""Heads in exact numbers, and plans that must not be made."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.extra.huggingface.plan import UNIT, StageHead, orbit, side_by_side
from fsa2lrnn.extra.huggingface.reflections import reflections
from fsa2lrnn.extra.huggingface.registers import register

ROOT = Path(__file__).parents[4]


def test_a_step_is_the_gated_delta_rule():
    k, v = np.array([0.5, 0.5, 0.5, 0.5]), np.array([3.0, 1.0])
    head = StageHead(k[None], v[None], np.ones(1), np.full(1, 2.0), np.ones(4), np.ones(2))
    S = np.arange(8.0).reshape(4, 2)
    assert np.array_equal(head.step(S, 0), (np.eye(4) - 2 * np.outer(k, k)) @ S + 2 * np.outer(k, v))


def test_an_orbit_is_closed_under_its_table():
    found = reflections(zoo.group("S4", "transpositions").delta, 0)
    assert len(found.states) == 24
    for a, row in enumerate(found.table):
        for S, after in zip(found.states, row, strict=True):
            assert np.array_equal(found.head.step(S, a), found.states[after])


def numbers(found):
    """What becomes weights, in the type that these have."""
    return np.concatenate([found.head.query, found.marks.ravel(), [found.gap]]).astype(np.float32)


def test_what_rounding_leaves_of_zero_is_zero():
    """A query had entries of 5e-18, of one sign on one CPU and of the other on another, and weights depend on it."""
    found = numbers(reflections(zoo.group("S5", "transpositions").delta, 0))
    assert np.abs(found[found != 0]).min() > 1e-3


OTHER_CPU = """
import sys
from fsa2lrnn import zoo
from fsa2lrnn.extra.huggingface.reflections import reflections
from tests.fsa2lrnn.extra.huggingface.test_plan import numbers
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


def test_what_never_closes_is_given_up():
    grows = StageHead(np.ones((1, 1)), np.full((1, 1), UNIT), np.ones(1), np.full(1, 1.5), np.ones(1), np.ones(1))
    with pytest.raises(BudgetExceeded, match="more than 20 states"):
        orbit(grows, limit=20)


def test_heads_that_do_not_tell_outputs_apart_are_refused():
    keeps = register(np.array([[0], [0]]))
    with pytest.raises(NotExpressible, match="two outputs"):
        side_by_side(zoo.parity(), [keeps], "nothing")


def test_units_name_outputs_of_the_machine():
    machine = MooreMachine([[0, 0], [1, 1]], ["x", "y"])
    plan = side_by_side(machine, [register(machine.delta)], "a register")
    assert plan.outputs == ("x", "y")
    assert sorted((unit.marks, unit.target) for unit in plan.stages[0].units) == [((1,), 0), ((2,), 1)]
