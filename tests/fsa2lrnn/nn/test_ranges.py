"""Bounds on rounding at the edges of their ranges: what torch computes lies within, or the bound is infinite."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import linear, normalize

from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.nn.layers.selective_rounding import decays
from fsa2lrnn.nn.normalise import normalise
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.zonotopes import Zonotopes

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LENGTHS = (1, 2, 3, 8, 17, 33)  # about the widths of vector registers
SHAPES = (0.0, 2.0**-30, 0.0625, 0.75, 2.0)  # by how much of the largest entry the others differ from it


def values(dtype, n):
    """Rows (N, n) near the ends and the square roots of the range, nearly equal or not, of one sign or both."""
    info = torch.finfo(dtype)
    top, bottom = math.log2(info.max), max(math.log2(info.tiny) - 12, -1060)
    places = [0, *(bottom + 2 * k for k in range(24)), *(top / 2 + k / 2 for k in range(-8, 9))]
    places += [-top / 2 + k for k in range(-8, 9)] + [top - k / 4 for k in range(1, 25)]
    steps = torch.arange(n, dtype=torch.float64) % 3 / 2
    rows = torch.stack([2.0**place * (1 - apart * steps) for place in places for apart in SHAPES]).to(dtype)
    return rows[rows.isfinite().all(-1)]


def within(bound, computed):
    """Check a result against its bound; return the share of rows that are bounded."""
    is_bounded = bound.off.isfinite()
    assert ((computed.double() - bound.mid).abs() <= bound.off)[is_bounded].all()
    return float(is_bounded.double().mean())


def box(x):
    return Zonotopes.boxes(x.double(), torch.zeros_like(x.double()), FloatFormat.of(x.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_layer_norm(dtype, n):
    """Means above 2^64 in float32: the square of a difference of partial means is infinite, times a count of 0 NaN."""
    norm = nn.LayerNorm(n, 1e-5).to(dtype)
    nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(n))
    x = values(dtype, n)
    with torch.no_grad():
        assert within(box(x).layer_norm(norm), norm(x)) < 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_unit_keys(dtype, n):
    """In float16 the least divisor 1e-12 is 0, and a zero key becomes NaN."""
    x = torch.cat([torch.zeros(1, n, dtype=dtype), values(dtype, n)])
    for numbers in (RoundedNumbers.exact(x), box(x)):
        within(numbers.normalised(), normalize(x, dim=-1))
        is_bounded = numbers.normalised().off[0].isfinite()
        assert not is_bounded.any() if dtype is torch.float16 else is_bounded.all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rule", ["paper", "clip"])
@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
@pytest.mark.parametrize("b", [2, 3, 8])
def test_column_rules(dtype, rule, p, b):
    """Near the largest number the sum of a column overflows before its mean is formed."""
    columns = values(dtype, b)
    blocks = torch.stack([columns, columns.flip(-1) / 2, *([columns] * (b - 2))], -1)  # (N, b, b)
    for method in ("reference", "fused"):
        for numbers in (RoundedNumbers.exact(blocks), box(blocks.flatten(1)).unflatten((b, b))):
            assert within(numbers.columns(rule, p), normalise(blocks, rule, p, method)) < 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_sums_products_and_sigmoids(dtype, n):
    x = values(dtype, n)
    W, b = torch.ones(3, n, dtype=dtype), torch.zeros(3, dtype=dtype)
    W[1, ::2] = -1
    for numbers in (RoundedNumbers.exact(x), box(x)):
        within(numbers.linear(W, b), linear(x, W, b))
        within(numbers * numbers, x * x)
        within(numbers - numbers.scaled(2), x - x * 2)
        assert within(numbers.sigmoid(), x.sigmoid()) > 0.9
        within(numbers.linear(W, b).relu(), linear(x, W, b).relu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_rate_of_decay_that_overflows_has_no_bound(dtype):
    """exp(A_log) is infinite and the softplus of a very negative number 0: their product is NaN."""
    z = torch.tensor([[-1000.0], [-50.0], [0.0], [3.0]], dtype=dtype)
    A_log = torch.tensor([5.0, 80.0, 90.0, 800.0], dtype=torch.float64)
    computed = (A_log.to(dtype).exp() * torch.nn.functional.logsigmoid(-z)).exp()
    share = within(decays(RoundedNumbers.exact(z.expand(4, 4)), A_log.exp()), computed)
    assert share == (0.5 if dtype is torch.float32 else 0.75)
