"""Bounds on rounding and on directions, against many orders of summation, and float64 as if it were exact."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from fsa2lrnn.checker.claims import Sets
from fsa2lrnn.checker.errors import UnsupportedInput
from fsa2lrnn.checker.rounding import Ball, FloatFormat, ReadoutError, Slack, StepError
from fsa2lrnn.checker.steps import LetterBounds, groups
from fsa2lrnn.nn.affine import EPS, Readout, SwitchedAffine
from fsa2lrnn.verification.certificate import plain

KIND = FloatFormat(2.0**-24, float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max))


@pytest.mark.parametrize("seed", range(5))
def test_steps_in_any_order_with_and_without_fusing(seed):
    rng = np.random.default_rng(seed)
    b = 8
    A, v, x = (np.float32(rng.normal(size=shape)) for shape in ((1, 1, b, b), (1, 1, b), (200, b)))
    error = StepError(np.float64(A), np.float64(v), Slack(), KIND)
    exact = np.float64(x) @ np.float64(A[0, 0]).T + v[0, 0]
    bound = np.abs(x) @ error.matrix[0, 0].T + error.constant[0, 0]
    for order in (np.arange(b), rng.permutation(b), np.arange(b)[::-1]):
        plain, fused = np.float32(0) * x, np.float32(0) * x
        for j in order:
            plain = plain + A[0, 0, :, j] * x[:, j, None]
            fused = np.float32(np.float64(A[0, 0, :, j]) * x[:, j, None] + fused)
        for found in (plain + v[0, 0], fused + v[0, 0]):
            assert (np.abs(found - exact) <= bound).all()
    assert (np.abs(np.float32(np.float16(x)) @ A[0, 0].T + v[0, 0] - exact) > bound).any()  # coarser: not covered


def two_pass(x):
    mean = x.mean(-1, keepdims=True)
    return mean, ((x - mean) ** 2).mean(-1, keepdims=True)


def one_pass(x):
    mean = x.mean(-1, keepdims=True)
    return mean, np.maximum((x * x).mean(-1, keepdims=True) - mean * mean, np.float32(0))


def updating(x):
    mean, total = x[..., :1] * np.float32(0), x[..., :1] * np.float32(0)
    for j in range(x.shape[-1]):
        delta = x[..., j : j + 1] - mean
        mean = mean + delta / np.float32(j + 1)
        total = total + delta * (x[..., j : j + 1] - mean)
    return mean, total / np.float32(x.shape[-1])


@pytest.mark.parametrize("moments", [two_pass, one_pass, updating])
@pytest.mark.parametrize("offset", [0.0, 3.0, 30.0])
def test_logits_by_every_way_to_norm(moments, offset):
    """Logits times the scale that was computed are within the bound; the scale itself is within its own."""
    rng = np.random.default_rng(7)
    n, m = 64, 32
    shapes = {"W1": (m, n), "b1": (m,), "W2": (3, m), "b2": (3,), "norm_weight": (n,), "norm_bias": (n,)}
    w = {name: np.float32(rng.normal(size=shape) / 4) for name, shape in shapes.items()}
    exact = {name: np.float64(number) for name, number in w.items()}
    x = np.float32(rng.normal(size=(300, n)) + offset)
    error = ReadoutError(exact, KIND)
    mean, variance = moments(x)
    scale = np.float32(1) / np.sqrt(variance + np.float32(EPS))
    sigma = np.sqrt(np.float64(x).var(-1, keepdims=True) + EPS)
    size = np.abs(np.float64(x)).max(-1)
    assert (np.abs(scale * sigma - 1)[:, 0] <= error.scale(size, sigma[:, 0])).all()
    for y in ((x - mean) * scale * w["norm_weight"], (x * scale - mean * scale) * w["norm_weight"]):
        z = np.maximum((y + w["norm_bias"]) @ w["W1"].T + w["b1"], 0) @ w["W2"].T + w["b2"]
        ideal = (np.float64(x) - np.float64(x).mean(-1, keepdims=True)) * np.float64(scale) * exact["norm_weight"]
        hidden = np.maximum((ideal + exact["norm_bias"]) @ exact["W1"].T + exact["b1"], 0)
        off = np.abs(z - (hidden @ exact["W2"].T + exact["b2"])) / np.float64(scale)
        assert (off <= error.of_size * size[:, None] + error.of_sigma / np.float64(scale)).all()


def test_variances_that_rounding_may_take_give_no_scale():
    weights = {name: np.ones((2, 2)) for name in ("W1", "W2")} | {
        name: np.ones(2) for name in ("b1", "b2", "norm_weight", "norm_bias")
    }
    error = ReadoutError(weights, KIND)
    assert error.scale(np.array([1.0, 1e4]), np.array([1.0, 1.0])).tolist()[1] == np.inf


def tables(dtype=torch.float32, b=2, fill=1.0):
    return SwitchedAffine.of(
        torch.full((1, 1, b, b), fill, dtype=dtype), torch.zeros(1, 1, b, dtype=dtype), torch.ones(1, b, dtype=dtype),
        Readout.linear(torch.ones(2, b, dtype=dtype), torch.zeros(2, dtype=dtype)),
    )  # fmt: skip


def test_what_the_bounds_are_not_for_is_refused():
    assert plain(tables()).format().u == 2.0**-24
    assert plain(tables(torch.float64)).format().u == 2.0**-53
    with pytest.raises(UnsupportedInput, match=r"float16: the bounds on its rounding"):
        plain(tables(torch.float16)).format()
    with pytest.raises(UnsupportedInput, match="a width up to 1,024"):
        plain(tables(b=1_025)).format()
    with pytest.raises(UnsupportedInput, match="A, v, x0, W1: no entries"):
        plain(tables(b=0)).format()
    for fill in (2.0**41, float("nan"), float("inf")):
        with pytest.raises(UnsupportedInput, match=r"A: sums of over 2\^40"):
            plain(tables(fill=fill)).format()


def test_numbers_are_exact():
    third = torch.full((1, 1, 1, 1), 1 / 3)
    model = SwitchedAffine.of(third, third[0], third[0, 0], Readout.linear(torch.ones(2, 1), torch.zeros(2)))
    assert float(plain(model).weights["A"][0, 0, 0, 0]) == float(third)


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


@pytest.mark.parametrize("angle", [0.1, -0.1])
def test_a_turning_disc_stays_small(angle):
    """Intervals grow by cos + sin at each turn, some tenfold in all; a fan by a hundredth of that."""
    M, letters = turned(angle), 24
    lower, upper = carried(M, fan(8), letters)
    assert upper.max() < 1.7
    assert (np.abs(np.cos(angle)) + np.abs(np.sin(angle))) ** letters > 8
    assert np.allclose(lower, -upper)
    assert (upper >= 1 - 1e-9).all()  # the disc turns onto itself


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
