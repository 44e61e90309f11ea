"""Bounds on rounding, against float32 computed in many orders and float64 as if it were exact."""

import numpy as np
import pytest
import torch

from fsa2lrnn.checker.errors import UnsupportedInput
from fsa2lrnn.checker.rounding import FloatFormat, ReadoutError, Slack, StepError
from fsa2lrnn.lrnn.affine import EPS, Readout, SwitchedAffine
from fsa2lrnn.verification.plain import plain

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
