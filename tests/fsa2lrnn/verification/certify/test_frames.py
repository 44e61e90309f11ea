"""Coordinates: where a machine is computed exactly, letters leave the slow ones as they are."""

import numpy as np
import torch
from hypothesis import given, settings

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.checker.nodes import nodes
from fsa2lrnn.verification.certify.frames import Frames, components
from fsa2lrnn.verification.plain import plain
from fsa2lrnn.verification.specification import specification_of

from .conftest import perturbed, perturbed_machines


def actions(tables, found, basis):
    """T⁻¹ A T for each letter and node: (|Σ|, F, H, b, b)."""
    pairs = zip(found.delta, plain(tables).weights["A"], strict=True)
    return np.stack([np.linalg.inv(basis[to]) @ A @ basis for to, A in pairs])


def test_what_an_exact_solution_keeps_does_not_move():
    machine = zoo.sum_mod(3)
    tables = perturbed(machine, noise=0, dtype=torch.float64)
    goal = specification_of(tables, machine).target
    found = nodes(goal, 2, 2)
    basis, slow = Frames(plain(tables).weights["A"], goal).of(found, 0.9)
    assert slow.sum(-1).tolist() == [[3]] * len(found.state)
    assert np.abs(actions(tables, found, basis)[..., :3, :3] - np.eye(3)).max() < 1e-5


def test_what_contracts_is_no_slow_coordinate_and_shrinks_in_its_norm(forgetful):
    machine, tables = forgetful
    goal = specification_of(tables, machine).target
    found = nodes(goal, 1, 1)
    basis, slow = Frames(plain(tables).weights["A"], goal).of(found, 0.9)
    assert not slow.any()
    assert np.linalg.norm(actions(tables, found, basis), 2, axis=(-2, -1)).max() < 0.75


@settings(max_examples=15)
@given(perturbed_machines())
def test_bases_are_bases_whatever_the_tables(drawn):
    machine, tables = drawn
    goal = specification_of(tables, machine).target
    found = nodes(goal, 2, 1)
    for threshold in (0.5, 0.93):
        basis, slow = Frames(plain(tables).weights["A"], goal).of(found, threshold)
        assert basis.shape == (*slow.shape, slow.shape[-1])
        assert (np.linalg.cond(basis) < 1e7).all()
        assert np.array_equal(basis, np.float64(np.float32(basis)))


def test_components():
    machine = MooreMachine([[1, 1, 2, 3], [2, 1, 2, 3]], [0, 1, 2, 3], 0, "ab")
    goal = specification_of(perturbed(machine), machine).target
    label = components(goal)
    assert label[goal.start] == -1
    assert sorted(label.tolist()) == [-1, 0, 1]
    assert components(specification_of(perturbed(zoo.sum_mod(3)), zoo.sum_mod(3))).tolist() == [0, 0, 0]


def test_what_is_kept_exactly_is_told_from_what_is_kept_nearly(drifting):
    machine = zoo.sum_mod(3)
    exact = perturbed(machine, noise=0, heads=2, dtype=torch.float64)
    goal = specification_of(exact, machine).target
    found = nodes(goal, 1, 1)
    keeping, nearly = Frames(plain(exact).weights["A"], goal), Frames(plain(drifting[1]).weights["A"], goal)
    assert (keeping.keep_exactly, nearly.keep_exactly) == (True, False)
    basis, slow = keeping.of(found, None)
    assert slow.sum(-1).tolist() == [[3, 0]] * len(found.state)
    assert np.abs(actions(exact, found, basis)[:, :, 0, :3, 3:]).max() < 1e-5  # nothing forgotten comes back
