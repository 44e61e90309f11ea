"""Bounds along directions: shares of those that fan out leave nothing for the intervals to bound."""

from fractions import Fraction

import numpy as np
import pytest

from fsa2lrnn.checker.intervals import Ball
from fsa2lrnn.checker.sets import Sets
from fsa2lrnn.checker.steps import LetterBounds, Slabs, groups


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
    return LetterBounds(group, Ball.exact(M[None, None]), t, directions, directions, slow, np.ones(1, bool))


def carried(M, rows, letters):
    """Bounds on the rows for a set that begins as a disc of radius 1."""
    step = along(M, rows)
    radius = np.ones((1, 1, 2, 1))
    centre, ball, error = np.zeros_like(radius), np.zeros((1, 1, 1)), np.zeros((1, 1, 2, 1))
    lower, upper = -np.ones((1, len(rows), 1)), np.ones((1, len(rows), 1))
    for _ in range(letters):
        spread = np.abs(M)[None, None] @ radius
        sets = Sets(1, np.ones((1, 1), bool), centre, radius, ball, lower, upper)
        lower, upper = step.bounds(sets, spread, error)
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
    group = Slabs(np.arange(4), np.array([0]), True)
    step = LetterBounds(group, M, t, there, before, np.ones((1, 1, 2), bool), np.ones(1, bool))
    assert not step.share.any()
    assert np.allclose(step.rest, np.abs(step.image))


def exact(x):
    """An array's numbers as fractions."""
    return np.vectorize(Fraction, otypes=[object])(x)


def about(w, slow, rng):
    """A set (centre, radius, ball) that holds the states w (E, H, b), some of them at its corners."""
    off = rng.normal(size=w.shape) * rng.choice([1e-12, 1.0, 1e3], size=w.shape) * (rng.random() < 0.7)
    centre = w + off
    radius = np.where(slow, np.abs(centre - w) * (1 + 1e-15), 0.0)
    ball = np.sqrt((((centre - w) * ~slow) ** 2).sum(-1)) * (1 + 1e-15)
    return centre, radius, ball


@pytest.mark.parametrize("kind", ["any", "fan", "far", "small", "unlike", "carried"])
def test_no_direction_leaves_an_image_out(kind):
    """Against fractions: sets off the origin, fast coordinates, letters that add, directions that a search would not
    choose, unlike ones at source and target, bounds that hold a state to the last bit."""
    rng = np.random.default_rng(3)
    E, D, H, b = 3, 5, 2, 3
    for _ in range(12):
        there, before = (rng.normal(size=(E, D, H, b)) for _ in range(2))
        if kind == "fan":
            there, before = np.zeros((E, D, H, b)), np.zeros((E, D, H, b))
            there[:, :, 1, :2] = before[:, :, 1, :2] = [[1, 0], [0, 1], *rng.normal(size=(3, 2))]
        there, before = (x * {"far": 1e9, "small": 1e-9}.get(kind, 1.0) for x in (there, before))
        before = before * (1e-7 if kind == "unlike" else 1.0)
        slow = rng.random((E, H, b)) < 0.7
        there_slow = slow if kind == "fan" else rng.random((E, H, b)) < 0.7
        there, before = there * there_slow[:, None], before * slow[:, None]
        M, w = rng.normal(size=(E, H, b, b)), rng.normal(size=(E, H, b)) * 10
        t = rng.normal(size=(E, H, b)) if rng.random() < 0.5 else -(M @ w[..., None])[..., 0]  # so that much cancels
        if kind == "carried":  # as if the source knew what becomes of each direction, or its opposite
            slow = np.ones((E, H, b), bool)
            before = np.einsum("edhi,ehij->edhj", there, M) * rng.choice([-2.0, 0.5], size=(E, D, 1, 1))
        centre, radius, ball = about(w, slow, rng)
        known = (exact(before) * exact(w)[:, None]).sum((2, 3))  # (E, D)
        lower, upper = (np.nextafter(known.astype(float), side * np.inf) for side in (-1, 1))
        loose = rng.random((2, E, D)) * (rng.random((2, E, D)) < 0.5)
        lower, upper = lower - loose[0], upper + loose[1]
        image = (exact(M) * exact(w)[:, :, None]).sum(3) + exact(t)
        wanted = (exact(there) * image[:, None]).sum((2, 3))
        spread = np.abs(M) @ (radius + ball[..., None])[..., None] * (1 + 1e-12)
        error = np.zeros((E, H, b, 1))
        extent = there if kind == "fan" else np.abs(np.concatenate([there, before])).max(0, keepdims=True)
        for group in groups(extent):
            step = LetterBounds(group, Ball.exact(M), Ball.exact(t), there, before, slow, np.ones(E, bool))
            numbers = (x[..., None] for x in (centre, radius, ball, lower, upper))
            low, high = step.bounds(Sets(1, np.ones((E, 1), bool), *numbers), spread, error)
            for e in range(E):
                for d, row in enumerate(group.rows):
                    assert Fraction(low[e, d, 0]) <= wanted[e, row] <= Fraction(high[e, d, 0])
