"""Dead-beat blocks carry the image and nothing else."""

import numpy as np

from fsa2lrnn.automata import zoo
from fsa2lrnn.repairing.dyadic import dead_beat, forget
from fsa2lrnn.repairing.probe import fit, least_change


def walk(block, tokens):
    x = block.x0
    for a in tokens:
        x = block.A[a] @ x + block.v[a]
    return x


def test_states_depend_on_the_last_letter_and_the_state_before_it(disturbed, work):
    machine = zoo.tomita(4)
    block, image, seen = work(disturbed(machine), machine)[0]
    probe = fit(block, image, seen, 1.0)
    repaired = least_change(block, image, probe)
    beat = dead_beat(repaired, image, probe, seen)
    assert probe.residual(beat.block, image) < 1e-13
    states = beat.states(image)
    rng = np.random.default_rng(0)
    for length in (1, 2, 5, 30):
        tokens = rng.integers(0, 2, length)
        q = len(image.phi) - 1
        for a in tokens[:-1]:
            q = image.delta[a, q]
        assert np.allclose(walk(beat.block, tokens), states[tokens[-1], q], atol=1e-9)


def test_the_mean_is_kept(disturbed, work):
    """States of the dead-beat block are near those that they stand for."""
    machine = zoo.sum_mod(5)
    block, image, seen = work(disturbed(machine), machine)[0]
    probe = fit(block, image, seen, 1.0)
    beat = dead_beat(least_change(block, image, probe), image, probe, seen)
    states = beat.states(image)[:, :-1]
    centres = np.stack([seen.x[seen.state == q].mean(0) for q in range(5)])
    reached = np.stack([states[image.delta[:, :-1] == q].mean(0) for q in range(5)])
    assert np.abs(centres - reached).max() < 0.15


def test_forgetting_leaves_the_letter(disturbed, work):
    machine = zoo.sum_mod(3)
    block, _, seen = work(disturbed(machine), machine)[0]
    found = forget(block, seen)
    assert not found.A.any()
    assert np.allclose(found.v, block.v + block.A @ seen.mean)
