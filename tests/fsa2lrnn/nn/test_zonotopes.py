"""Zonotopes and factors against float evaluations: what is computed lies within the bounds, at points of known ε."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.nn import BlockLayerConfig, HouseholderLayerConfig, LRNNConfig
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.normalise import normalise
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.zonotopes import Zonotopes

KIND = FloatFormat.of("float32")
POINTS = 48


def box(width, radius, seed, rows=32):
    """Boxes whose points at ε in {−1, −½, 0, ½, 1} are float32 numbers."""
    generator = torch.Generator().manual_seed(seed)
    mid, radius = torch.randn(rows, width, generator=generator), radius * torch.rand(rows, width, generator=generator)
    mid, radius = (1024 * mid).round() / 1024, (8192 * radius).round() / 8192
    return Zonotopes.boxes(mid.double(), radius.double(), KIND)


def blocks(z):
    return z.unflatten((2, 3, 3))


def applied(x, f, on_points, seed=0):
    """Check the image of a set under f against `on_points`, computed in float32 at points of it."""
    generator, image = torch.Generator().manual_seed(seed), f(x)
    assert image.own.isfinite().all()
    unknown = torch.randint(-2, 3, (POINTS, len(x.mid), x.shared.shape[-1]), generator=generator).double() / 2
    computed = on_points((x.mid + (x.shared * unknown[:, :, None]).sum(-1)).float())
    wide = unknown.reshape(*unknown.shape[:2], *(1,) * (image.mid.ndim - 1), -1)
    expected = image.mid + (image.shared * wide).sum(-1)
    assert ((computed.double() - expected).abs() <= image.own).all()


@pytest.mark.parametrize("radius", [0.0, 1e-4, 0.05, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_every_operation_encloses_what_float32_computes(radius, seed):
    x = box(12, radius, seed)
    linear = nn.Linear(12, 20)
    norm = nn.LayerNorm(12)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    maps = {
        "linear": (lambda z: z.linear(linear.weight, linear.bias), linear),
        "relu": (lambda z: z.relu(), torch.relu),
        "gate": (lambda z: z.linear(linear.weight, linear.bias).relu(), lambda y: linear(y).relu()),
        "product": (lambda z: z * z[..., torch.arange(11, -1, -1)], lambda y: y * y.flip(-1)),
        "sum": (lambda z: z + z[..., torch.arange(11, -1, -1)].scaled(2.0**-20), lambda y: y + y.flip(-1) * 2.0**-20),
        "scaled": (lambda z: z.scaled(1 / 3), lambda y: y * (1 / 3)),
        "keys": (lambda z: z.unflatten((3, 4)).normalised(), lambda y: normalize(y.unflatten(-1, (3, 4)), dim=-1)),
        "rates": (lambda z: z.like(z.sigmoid()), torch.sigmoid),
        "norm": (lambda z: z.layer_norm(norm), norm),
    }  # fmt: skip
    with torch.no_grad():
        for name, (f, on_points) in maps.items():
            if name != "norm" or radius < 0.5:  # wider sets may hold constant rows
                applied(x, f, on_points, seed)


@pytest.mark.parametrize("radius", [0.0, 1e-3, 0.1, 0.6])
@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
@pytest.mark.parametrize("rule", ["none", "clip", "paper"])
def test_column_rules_and_products_enclose_both_methods(rule, p, radius):
    size = 2 * 9
    for seed in range(3):
        x = box(size, radius, seed)
        if seed == 1:  # one-hot columns, whose norm is near 1
            hot = torch.eye(3)[torch.arange(3).roll(1)].double().repeat(len(x.mid), 2, 1, 1).flatten(1)
            x = Zonotopes.boxes(hot, x.off, KIND)
        image = blocks(x).columns(rule, p)
        if not x.like(image).own.isfinite().all():  # a column may be constant
            assert rule == "paper"
            continue
        for method in ("reference", "fused"):
            written = lambda y, method=method: normalise(y.unflatten(-1, (2, 3, 3)), rule, p, method)  # noqa: E731
            applied(x, lambda z: z.like(blocks(z).columns(rule, p)), written, seed)
        squared = lambda y: normalise(y.unflatten(-1, (2, 3, 3)), rule, p) @ y.unflatten(-1, (2, 3, 3))  # noqa: E731
        applied(x, lambda z: z.like(blocks(z).columns(rule, p)) @ blocks(z), squared, seed)


def test_differences_of_what_depends_on_the_same_numbers_stay_tight():
    x = box(6, 0.5, 0)
    assert float((x - x).off.max()) < 1e-5
    assert float((x.off + x.off).max()) > 0.5
    square = x * x
    plain = RoundedNumbers(x.mid, x.off, KIND)
    assert (square.off <= (plain * plain).off * (1 + 1e-6)).all()
    centred = x[..., None].centred()
    assert (centred.off <= plain[..., None].centred().off * (1 + 1e-6) + 1e-5).all()
    plain_minus = RoundedNumbers.exact(x.mid, KIND) - x
    assert torch.equal(plain_minus.shared, -x.shared)


@pytest.mark.parametrize("rule", ["clip", "paper"])
def test_small_sets_are_enclosed_to_second_order(rule):
    """The own error of column rules and of LayerNorm falls with the square of the radius."""
    norm = nn.LayerNorm(9).double()
    wide, small = (box(9, radius, 0) for radius in (1e-2, 1e-3))
    double = FloatFormat.of("float64")
    for f in (lambda z: z.unflatten((3, 3)).columns(rule, 1.2), lambda z: z.layer_norm(norm), lambda z: z * z):
        errors = [f(Zonotopes(x.mid, x.off, double, x.shared, x.own)).own.mean() for x in (wide, small)]
        assert errors[0] > 30 * errors[1]


def test_numbers_that_may_overflow_have_no_bound():
    x = box(3, 0.5, 0).scaled(1e30)
    assert (x * x).off.isinf().all()
    assert (x * x).linear(torch.ones(1, 3), torch.zeros(1)).off.isinf().all()
    assert x.like(x[..., None].scaled(0)._inverse_norms(2.0, 0.0)).off.isinf().all()


@pytest.mark.parametrize("layer", [
    BlockLayerConfig((3, 2), 7, 5),
    HouseholderLayerConfig(4, 2, 7, 5, 2, True),
    HouseholderLayerConfig(4, 2, 7, 5, 2),
])  # fmt: skip
def test_layers_enclose_their_tables(layer):
    torch.manual_seed(0)
    model = LRNN(LRNNConfig(alphabet=("a", "b"), outputs=(0, 1), layers=(layer,), embedding_dim=6))
    module = model.recurrences[0]
    x = box(6, 0.02, 1)
    with torch.no_grad():
        for i in (0, 1):
            applied(x, lambda z, i=i: z.like(module.rounded_tables(z)[i]), lambda y, i=i: module.tables(y)[i])


@pytest.mark.parametrize("factor", [1 / 3, -0.606531, math.pi, 2.0, -1.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_factor_is_rounded_too(factor, dtype):
    x = torch.rand(10_000, generator=torch.Generator().manual_seed(0)).to(dtype)
    bound = RoundedNumbers.exact(x).scaled(factor)
    for computed in (x * factor, x * torch.tensor(factor, dtype=dtype)):
        assert ((computed.double() - bound.mid).abs() <= bound.off).all()
