"""The read-out of an image, and the least change that makes it exact."""

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.repairing.probe import Block, ReadoutProbe, explained_share, fit, least_change
from fsa2lrnn.repairing.representation import Representation


@pytest.fixture(scope="module")
def cycle(disturbed, work):
    machine = zoo.sum_mod(5)
    block, image, seen = work(disturbed(machine), machine)[0]
    return block, image, seen, fit(block, image, seen, 1.0)


def test_the_probe_tells_the_image(cycle):
    block, image, seen, probe = cycle
    assert image.rank == 4
    assert explained_share(probe, image, seen) > 0.99
    assert explained_share(ReadoutProbe(0 * probe.U, image.phi[seen.state].mean(0)), image, seen) < 0.01
    assert probe.residual(block, image) < 0.05


def test_the_change_makes_the_equations_exact(cycle):
    block, image, _, probe = cycle
    assert probe.residual(block, image) > 1e-4
    assert probe.residual(least_change(block, image, probe), image) < 1e-14


def test_no_smaller_change_does(cycle):
    """What a letter's table may differ by, and stay exact, stands at right angles to the change."""
    block, image, _, probe = cycle
    changed = least_change(block, image, probe)
    unread = np.eye(block.A.shape[1]) - np.linalg.pinv(probe.U) @ probe.U
    rng = np.random.default_rng(0)
    for _ in range(5):
        free = unread @ rng.standard_normal(block.A.shape)
        assert probe.residual(Block(changed.A + free, changed.v, changed.x0), image) < 1e-13
        assert abs((free * (changed.A - block.A)).sum()) < 1e-12


def test_stiffness_trades_what_is_observed_for_the_equations(cycle):
    block, image, seen, _ = cycle
    soft, stiff = (fit(block, image, seen, stiffness) for stiffness in (0.01, 30.0))
    assert stiff.residual(block, image) < soft.residual(block, image)
    assert explained_share(stiff, image, seen) < explained_share(soft, image, seen)


def test_each_fault_is_seen(cycle):
    block, image, _, probe = cycle
    exact = least_change(block, image, probe)
    for name in ("A", "v", "x0"):
        parts = {part: getattr(exact, part).copy() for part in ("A", "v", "x0")}
        parts[name].flat[0] += 1e-3
        assert probe.residual(Block(**parts), image) > 1e-6
    assert ReadoutProbe(probe.U, probe.c + 1e-3).residual(exact, image) > 1e-6


def test_a_mark_of_the_start_does_not_vary_after_letters(cycle):
    block, image, seen, _ = cycle
    n = len(image.phi)
    mark = Representation(np.eye(n)[:, -1:], np.zeros((5, 1, 1)), np.zeros((5, 1)), image.delta)
    assert explained_share(fit(block, mark, seen, 1.0), mark, seen) == 1.0
