"""Tails: for ever where states contract, far where they drift little, and refused by nobody."""

import numpy as np
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.lrnn.switched import Readout, SwitchedAffine
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.certify.tails import rounded
from fsa2lrnn.verification.check import check

from .conftest import assert_uncontradicted, perturbed


def test_contracting_tables_are_right_for_ever(forgetful):
    machine, tables = forgetful
    certificate = certify(tables, machine)
    assert certificate.horizon is None
    assert certificate.covers(10**9)
    assert_uncontradicted(certificate, tables, machine)
    check(certificate, tables)


def test_small_drift_carries_far():
    machine = zoo.parity()
    tables = perturbed(machine, noise=0, layer_norm=False, dtype=torch.float64)
    certificate = certify(tables, machine, 1)
    assert certificate.horizon > 10**6
    assert certificate.tube.tail
    check(certificate, tables)


def test_one_letter_one_block_of_size_one():
    tables = SwitchedAffine.of(
        torch.full((1, 1, 1, 1), -1.0), torch.zeros(1, 1, 1), torch.ones(1, 1),
        Readout.linear(torch.tensor([[1.0], [-1.0]]), torch.zeros(2)),
    )  # fmt: skip
    machine = MooreMachine([[1, 0]], [0, 1])
    certificate = certify(tables, machine)
    assert certificate.horizon > 10**4
    check(certificate, tables)


def test_rounded_sets_are_float32_and_hold_the_sets(drifting):
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
