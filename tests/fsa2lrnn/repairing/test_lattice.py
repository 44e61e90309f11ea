"""Rational and dyadic numbers, lattices and columns."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.repairing.dyadic import PLACES, Coset, DeadbeatBlock, Places, dead_beat, rational_image, round_block
from fsa2lrnn.repairing.probe import Block, ReadoutProbe, fit, least_change
from fsa2lrnn.repairing.representation import Representation


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(0, 3))
def test_solutions_are_exact_and_near(seed, r, coarse):
    rng = np.random.default_rng(seed)
    b, grid = r + 3, 8
    U = np.round(rng.standard_normal((r, b)) * 2.0**coarse) / 2.0**coarse
    coset = Coset(U, coarse, grid)
    if not coset.is_onto:
        return
    t = np.round(rng.standard_normal(r) * 2.0 ** (grid + coarse)) / 2.0 ** (grid + coarse)
    near = rng.standard_normal(b)
    found = coset.nearest(t, near)
    assert np.array_equal(U @ found, t)
    assert np.array_equal(found * 2.0**grid, np.round(found * 2.0**grid))
    real = near + np.linalg.pinv(U) @ (t - U @ near)  # the nearest without a grid
    assert np.linalg.norm(found - real) < 2.0 ** (coarse * r + 4 - grid)


def image_of(delta, phi):
    """The image whose functions are given, B and u by least squares."""
    wide = np.hstack([phi, np.ones((len(phi), 1))])
    maps = np.stack([np.linalg.lstsq(wide, phi[row], rcond=None)[0].T for row in delta])
    return Representation(phi, maps[:, :, :-1], maps[:, :, -1], delta)


def cycle(n, k=1):
    """Addition of 0 and 1 modulo n with a copy of 0 as initial state, and its rotation of frequency k."""
    q = np.append(np.arange(n), 0)
    angles = 2 * np.pi * k * q / n
    delta = np.stack([q, (q + 1) % n])
    return image_of(delta, np.stack([np.cos(angles), np.sin(angles)], axis=1)[:, : 1 if 2 * k == n else 2])


def check_exactly(found, delta):
    phi, B, u = (
        np.vectorize(Fraction, otypes=[object])(part) for part in (found.image.phi, found.image.B, found.image.u)
    )
    for a, row in enumerate(delta):
        assert (phi[row] == phi @ B[a].T + u[a]).all()


@pytest.mark.parametrize(
    ("n", "k", "rank"),
    [(2, 1, 1), (3, 1, 2), (4, 1, 2), (6, 1, 2), (6, 3, 1), (5, 2, 4), (7, 1, 6), (8, 3, 4), (12, 1, 4)],
)
def test_a_rotation_of_order_m_needs_phi_of_m_functions(n, k, rank):
    image = cycle(n, k)
    found = rational_image(image, 5)
    assert found.image.rank == rank
    check_exactly(found, image.delta)
    assert np.allclose(found.image.phi @ found.E.T + found.e, image.phi)


def test_registers_are_rounded_alike():
    def register(values):  # the first letter's value, and a function of the initial state alone
        n = len(values)
        delta = np.stack([np.append(np.arange(n), a) for a in range(n)])
        return image_of(delta, np.stack([[*values, 0.0], [0.0] * n + [1.0]], axis=1))

    image, errors = register([0.123, -0.77, 0.5001, 1.0]), []
    for bits in (3, 6, 9):
        found = rational_image(image, bits)
        assert found.image.rank == 2
        check_exactly(found, image.delta)
        errors.append(np.abs(found.image.phi @ found.E.T + found.e - image.phi).max())
    assert errors[2] < min(errors[0], 2e-3)
    assert errors[0] < 0.1
    found = rational_image(register([0.3, 0.3, -0.9, 0.1]), 6)
    assert (found.image.phi[0] == found.image.phi[1]).all()


FEW = Places(3, 6, 4)


@pytest.fixture(scope="module", params=[zoo.sum_mod(3), zoo.tomita(4), zoo.even_pair(2)], ids=["sum", "tomita", "pair"])
def beat(request, disturbed, work):
    block, image, seen = work(disturbed(request.param), request.param)[0]
    probe = fit(block, image, seen, 1.0)
    return dead_beat(least_change(block, image, probe), image, probe, seen), image


def test_equations_hold_states_repeat_and_more_places_come_nearer(beat):
    rounded = round_block(*beat, FEW, 0.3)
    U, c = rounded.beat.probe.U, rounded.beat.probe.c
    image = rounded.image
    assert np.array_equal(U @ rounded.beat.W, image.B)
    assert np.array_equal(rounded.beat.w @ U.T, image.u - c)
    assert np.array_equal(U @ rounded.beat.x0 + c, image.phi[-1])
    block = Block(*(part.astype(np.float32) for part in (rounded.block.A, rounded.block.v, rounded.block.x0)))
    seen, x, rng = set(), block.x0, np.random.default_rng(0)
    for a in rng.integers(0, len(block.A), 2_000):
        x = block.A[a] @ x + block.v[a]
        seen.add(x.tobytes())
    assert len(seen) <= rounded.image.delta.size
    dead, image = beat
    far, near = (round_block(dead, image, places, 0.3) for places in (PLACES[-1], PLACES[0]))
    wanted = dead.states(image)
    off = [np.abs(rounded.beat.states(rounded.image) - wanted).max() for rounded in (far, near)]
    assert off[1] < off[0]
    assert off[1] < 0.1


def test_rotations_that_do_not_fit():
    angles = 2 * np.pi * np.append(np.arange(5), 0) / 5
    phi = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    turn = np.array([[phi[1, 0], -phi[1, 1]], [phi[1, 1], phi[1, 0]]])
    delta = np.append((np.arange(5) + 1) % 5, 1)[None]
    image = Representation(phi, turn[None], np.zeros((1, 2)), delta)
    lift = np.eye(3)[:, :2]
    dead = DeadbeatBlock((lift @ turn)[None], np.zeros((1, 3)), lift[:, 0], ReadoutProbe(lift.T, np.zeros(2)))
    with pytest.raises(NotExpressible, match=r"4 in all \(L7\)"):
        round_block(dead, image, FEW, 0.3)
