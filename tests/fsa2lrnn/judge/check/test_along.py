"""Bounds along directions: shares of those that fan out leave nothing for the intervals to bound."""

import numpy as np
import pytest

from fsa2lrnn.judge.check.along import Along, Group, groups
from fsa2lrnn.judge.intervals import Ball


def turned(angle, stretch=1.0):
    cos, sin = np.cos(angle), np.sin(angle)
    return stretch * np.array([[cos, -sin], [sin, cos]])


def fan(count):
    angle = np.arange(count) * np.pi / count
    return np.round(np.stack([np.cos(angle), np.sin(angle)], -1), 12)


def along(M, rows):
    """One edge, one head of two slow coordinates."""
    directions = rows[None, :, None]  # (parts or E, D, H, b)
    (group,) = groups(directions)
    t, slow = Ball.exact(np.zeros((1, 1, 2))), np.ones((1, 1, 2), bool)
    return Along.of_letter(group, Ball.exact(M[None, None]), t, directions, directions, slow, np.ones(1, bool))


def carried(M, rows, letters):
    """Bounds on the rows for a set that begins as a disc of radius 1."""
    step = along(M, rows)
    radius = np.ones((1, 1, 2, 1))
    centre, ball, error = np.zeros_like(radius), np.zeros((1, 1, 1)), np.zeros((1, 1, 2, 1))
    lower, upper = -np.ones((1, len(rows), 1)), np.ones((1, len(rows), 1))
    for _ in range(letters):
        spread = np.abs(M)[None, None] @ radius
        lower, upper = step.bounds(centre, radius, ball, lower, upper, spread, error)
        radius = upper[:, [0, len(rows) // 2]].reshape(1, 1, 2, 1)  # of the coordinates
    return lower, upper


def test_shares_of_neighbours_leave_nothing():
    rng = np.random.default_rng(0)
    rows = fan(5)
    rows = np.concatenate([rows, np.eye(2)[1:]])[rng.permutation(6)]
    for _ in range(20):
        step = along(rng.normal(size=(2, 2)), rows)
        shares = step.share[0, :, :, None] * rows[step.of[0]]  # (D, 2, 2)
        assert np.allclose(shares.sum(1), step.image[0])
        assert (step.rest < 1e-9).all()


@pytest.mark.parametrize("angle", [0.1, -0.1])
def test_a_turning_disc_stays_small(angle):
    """Intervals grow by cos + sin at each turn, some tenfold in all; a fan by a hundredth of that."""
    M, letters = turned(angle), 24
    lower, upper = carried(M, fan(8), letters)
    assert upper.max() < 1.7
    assert (np.abs(np.cos(angle)) + np.abs(np.sin(angle))) ** letters > 8
    assert np.allclose(lower, -upper)
    assert (upper >= 1 - 1e-9).all()  # the disc turns onto itself


def test_what_the_disc_becomes_lies_within():
    rng = np.random.default_rng(1)
    M = turned(0.4, 0.97) + rng.normal(size=(2, 2)) * 0.05
    _, upper = carried(M, fan(6), 5)
    angle = np.linspace(0, 2 * np.pi, 400)
    images = np.linalg.matrix_power(M, 5) @ np.stack([np.cos(angle), np.sin(angle)])
    assert ((fan(6) @ images).max(1) <= upper[0, :, 0]).all()


def test_groups_by_heads():
    """Two heads together; a fan; one head's that has not both axes; one that leaves the plane."""
    rng = np.random.default_rng(2)
    directions = np.zeros((2, 9, 4, 3))
    directions[:, 0, :2] = rng.normal(size=(2, 2, 3))
    directions[:, 1:4, 1, :2] = [[1, 0], [0, 1], [0.6, 0.8]]
    directions[:, 4:6, 2, :2] = [[1, 0], [0.6, 0.8]]
    directions[:, 6:9, 3] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    found = [(group.rows.tolist(), group.heads.tolist(), group.is_fan) for group in groups(directions)]
    assert found == [
        ([0], [0, 1, 2, 3], False), ([1, 2, 3], [1], True), ([4, 5], [2], False), ([6, 7, 8], [3], False),
    ]  # fmt: skip


def test_directions_that_vanish_take_no_share():
    """As where a head has no slow coordinates: all is left to the interval."""
    rows = fan(4)
    there, before = rows[None, :, None], np.zeros((1, 4, 1, 2))
    M, t = Ball.exact(turned(0.3)[None, None]), Ball.exact(np.zeros((1, 1, 2)))
    group = Group(np.arange(4), np.array([0]), True)
    step = Along.of_letter(group, M, t, there, before, np.ones((1, 1, 2), bool), np.ones(1, bool))
    assert not step.share.any()
    assert np.allclose(step.rest, np.abs(step.image))
