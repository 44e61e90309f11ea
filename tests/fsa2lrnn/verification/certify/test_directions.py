"""Directions, frames and tails of certificates."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.checker.nodes import nodes
from fsa2lrnn.lrnn.switched import Readout, SwitchedAffine
from fsa2lrnn.verification.certificate import Tube
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.certify.directions import gradients
from fsa2lrnn.verification.certify.frames import Frames
from fsa2lrnn.verification.certify.tails import rounded
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.plain import plain
from fsa2lrnn.verification.specification import specification_of

from .conftest import assert_uncontradicted, perturbed, perturbed_machines


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


def test_contraction_and_small_drift_carry_far(forgetful):
    machine, tables = forgetful
    certificate = certify(tables, machine)
    assert certificate.horizon is None
    assert certificate.covers(10**9)
    assert_uncontradicted(certificate, tables, machine)
    check(certificate, tables)
    machine = zoo.parity()
    tables = perturbed(machine, noise=0, layer_norm=False, dtype=torch.float64)
    certificate = certify(tables, machine, 1)
    assert certificate.horizon > 10**6
    assert certificate.tube.tail
    check(certificate, tables)


def test_single_letters_and_rounded_sets(drifting):
    tables = SwitchedAffine.of(
        torch.full((1, 1, 1, 1), -1.0), torch.zeros(1, 1, 1), torch.ones(1, 1),
        Readout.linear(torch.tensor([[1.0], [-1.0]]), torch.zeros(2)),
    )  # fmt: skip
    machine = MooreMachine([[1, 0]], [0, 1])
    certificate = certify(tables, machine)
    assert certificate.horizon > 10**4
    check(certificate, tables)
    machine, tables = drifting
    for sets in certify(tables, machine, 1).tube.stored:
        wider = rounded(sets)
        assert (np.abs(wider.centre - sets.centre) + sets.radius <= wider.radius)[sets.radius > 0].all()
        assert (np.linalg.norm(wider.centre - sets.centre, axis=2) + sets.ball <= wider.ball).all()
        assert (wider.lower < sets.lower).all()
        assert (wider.upper > sets.upper).all()
        for name in ("centre", "radius", "ball", "lower", "upper"):
            number = getattr(wider, name)
            assert np.array_equal(number, np.float64(np.float32(number)))
