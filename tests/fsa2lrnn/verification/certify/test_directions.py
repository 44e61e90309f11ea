"""Directions: the gradient of margins times σ, in the coordinates of the nodes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.checker.nodes import nodes
from fsa2lrnn.checker.steps import groups
from fsa2lrnn.verification.certificate import Tube
from fsa2lrnn.verification.certify.directions import fans, gradients
from fsa2lrnn.verification.plain import plain
from fsa2lrnn.verification.specification import specification_of

from .conftest import perturbed


@pytest.mark.parametrize("layer_norm", [True, False])
def test_a_margin_grows_along_its_direction(layer_norm):
    """With the identity for a basis it is the gradient that torch finds."""
    machine = zoo.parity()
    tables = perturbed(machine, noise=0, layer_norm=layer_norm, dtype=torch.float64)
    goal = specification_of(tables, machine).target
    found = nodes(goal, 1, 1)
    F, (H, b) = len(found.state), tables.x0.shape
    basis, slow = np.broadcast_to(np.eye(b), (F, H, b, b)), np.ones((F, H, b), bool)
    tube = Tube(1, 1, 4, basis, slow, np.arange(2), np.zeros((2, 0, H, b)))
    rows = gradients(plain(tables), goal, found, tube)
    assert rows.shape == (2, 1, H, b)
    for q in (0, 1):  # the tables are exact, so that the letter q leads to all that state q is
        x = tables.run(torch.tensor([[q]]))[0, -1].clone().requires_grad_()
        flat = x.flatten()
        sigma = (flat.var(unbiased=False) + 1e-5).sqrt() if layer_norm else 1
        z = tables.logits(x) * sigma
        wanted = goal.expected[q]
        (z[wanted] - z[1 - wanted]).backward()
        assert np.allclose(rows[q, 0], x.grad.numpy(), rtol=1e-3, atol=1e-3)


def test_coordinates_that_are_not_slow_stay_out(drifting):
    machine, tables = drifting
    goal = specification_of(tables, machine).target
    found = nodes(goal, 1, 1)
    F, (H, b) = len(found.state), tables.x0.shape
    slow = np.zeros((F, H, b), bool)
    slow[..., 0] = True
    tube = Tube(1, 1, 2, np.broadcast_to(np.eye(b), (F, H, b, b)), slow, np.zeros(3, np.int64), np.zeros((1, 0, H, b)))
    rows = gradients(plain(tables), goal, found, tube)
    assert rows.shape == (1, 6, H, b)
    assert not rows[..., 1:].any()
    assert rows[..., 0].any()
    assert replace(tube, directions=rows).directions is rows


def test_a_fan_for_each_plane_of_slow_coordinates():
    slow = np.zeros((1, 3, 4), bool)
    slow[0, 0, :2] = slow[0, 1, :1] = slow[0, 2, :3] = True
    tube = Tube(1, 1, 2, np.zeros((1, 3, 4, 4)), slow, np.zeros(1, np.int64), np.zeros((2, 0, 3, 4)))
    rows = fans(tube)
    assert [group.is_fan for group in groups(rows)] == [True, True]
    assert [group.heads.tolist() for group in groups(rows)] == [[0], [2]]
    assert np.allclose(np.linalg.norm(rows, axis=(2, 3)), 1)
    assert fans(replace(tube, slow=np.zeros_like(slow))).shape == (2, 0, 3, 4)
