"""Dyadic blocks: exact equations, no rounding in any order, and what a small block can't hold."""

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.repairing.dyadic import PLACES, DeadbeatBlock, Places, dead_beat, round_block
from fsa2lrnn.repairing.probe import Block, ReadoutProbe, fit, least_change
from fsa2lrnn.repairing.representation import Representation

FEW = Places(3, 6, 4)


@pytest.fixture(scope="module", params=[zoo.sum_mod(3), zoo.tomita(4), zoo.even_pair(2)], ids=["sum", "tomita", "pair"])
def beat(request, disturbed, work):
    block, image, seen = work(disturbed(request.param), request.param)[0]
    probe = fit(block, image, seen, 1.0)
    return dead_beat(least_change(block, image, probe), image, probe, seen), image


def test_equations_hold_without_rounding(beat):
    rounded = round_block(*beat, FEW, 0.3)
    U, c = rounded.beat.probe.U, rounded.beat.probe.c
    image = rounded.image
    assert np.array_equal(U @ rounded.beat.W, image.B)
    assert np.array_equal(rounded.beat.w @ U.T, image.u - c)
    assert np.array_equal(U @ rounded.beat.x0 + c, image.phi[-1])


def test_no_order_of_summation_rounds_where_the_digits_suffice(beat):
    rounded = round_block(*beat, FEW, 0.3)
    assert rounded.bits <= 24
    block, rng = rounded.block, np.random.default_rng(0)
    x, a = block.x0, 0
    for a in rng.integers(0, len(block.A), 50):
        terms = np.hstack([block.A[a] * x, block.v[a][:, None]]).astype(np.float32)
        exact = block.A[a] @ x + block.v[a]
        for _ in range(3):
            total = np.zeros(len(x), np.float32)
            for term in rng.permutation(terms.T):
                total = total + term
            assert np.array_equal(total.astype(float), exact)
        x = exact


def test_states_repeat_bit_for_bit(beat):
    rounded = round_block(*beat, FEW, 0.3)
    block = Block(*(part.astype(np.float32) for part in (rounded.block.A, rounded.block.v, rounded.block.x0)))
    seen, x, rng = set(), block.x0, np.random.default_rng(0)
    for a in rng.integers(0, len(block.A), 2_000):
        x = block.A[a] @ x + block.v[a]
        seen.add(x.tobytes())
    assert len(seen) <= rounded.image.delta.size


def test_more_places_come_nearer(beat):
    dead, image = beat
    far, near = (round_block(dead, image, places, 0.3) for places in (PLACES[-1], PLACES[0]))
    wanted = dead.states(image)
    off = [np.abs(rounded.beat.states(rounded.image) - wanted).max() for rounded in (far, near)]
    assert off[1] < off[0]
    assert off[1] < 0.1


def test_a_rotation_of_five_does_not_fit_into_three_dimensions():
    angles = 2 * np.pi * np.append(np.arange(5), 0) / 5
    phi = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    turn = np.array([[phi[1, 0], -phi[1, 1]], [phi[1, 1], phi[1, 0]]])
    delta = np.append((np.arange(5) + 1) % 5, 1)[None]
    image = Representation(phi, turn[None], np.zeros((1, 2)), delta)
    lift = np.eye(3)[:, :2]
    dead = DeadbeatBlock((lift @ turn)[None], np.zeros((1, 3)), lift[:, 0], ReadoutProbe(lift.T, np.zeros(2)))
    with pytest.raises(NotExpressible, match=r"4 in all \(L7\)"):
        round_block(dead, image, FEW, 0.3)
