"""The gates behind state-space layers, against what their names say; the compiled ones against torch's."""

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.functional import gelu

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.kernels import mixing
from fsa2lrnn.extra.baselines.kernels.mixing import KINDS, Mixing, fused, reference

W = 4
TOLERANCE = {torch.float64: 1e-13, torch.float32: 2e-5}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_each_kind_is_what_it_says(kind, approximate):
    mixing, y = Mixing(W, kind, approximate), torch.randn(2, 3, W)
    g = gelu(y, approximate=approximate)
    z = mixing.linear(g) if "glu" in kind else None
    wanted = {
        "none": lambda: y,
        "gelu": lambda: g,
        "glu": lambda: z[..., :W] * torch.sigmoid(z[..., W:]),
        "half_glu1": lambda: g * torch.sigmoid(z),
        "half_glu2": lambda: y * torch.sigmoid(z),
    }[kind]()
    torch.testing.assert_close(mixing(y), wanted)
    torch.testing.assert_close(mixing(y[:, 0]), wanted[:, 0])


def test_unknown_kinds_are_refused():
    with pytest.raises(
        UnsupportedFormat, match="mixing 'swish' is not known: choose one of none, gelu, glu, half_glu1"
    ):
        Mixing(W, "swish")


def results(mix, y, kind, approximate, *weights):
    out = mix(y, kind, approximate, *weights)
    dout = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    return [out, *torch.autograd.grad(out, (y, *weights), dout)]


def drawn(kind, width=W, rows=(3, 7), dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    gates = {"glu": 2 * width, "half_glu1": width, "half_glu2": width}.get(kind)
    shapes = [(*rows, width), *([(gates, width), (gates,)] if gates else [])]
    return [(2 * torch.randn(shape, generator=generator, dtype=dtype)).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize(("rows", "width", "dtype"), [((3, 7), 4, torch.float64), ((130,), 16, torch.float32)])
def test_compiled_agrees_with_the_reference(kind, approximate, rows, width, dtype):
    y, *weights = drawn(kind, width, rows, dtype)
    found = zip(*(results(mix, y, kind, approximate, *weights) for mix in (fused, reference)), strict=True)
    for one, other in found:
        torch.testing.assert_close(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("kind", ["gelu", "glu", "half_glu2"])
def test_compiled_takes_no_rows_and_rows_that_are_not_contiguous(kind):
    y, *weights = drawn(kind)
    for given in (y[:0], y.transpose(0, 1)):
        torch.testing.assert_close(fused(given, kind, "none", *weights), reference(given, kind, "none", *weights))


@pytest.mark.parametrize("kind", ["gelu", "glu", "half_glu1", "half_glu2"])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gradcheck(kind, approximate):
    y, *weights = drawn(kind, rows=(2, 3))
    assert gradcheck(lambda *given: fused(given[0], kind, approximate, *given[1:]), (y, *weights))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_activations_far_out_and_not_numbers(approximate):
    far = torch.tensor([[-math.inf, -400.0, -20.0, -9.0], [0.0, 30.0, 1e30, math.nan]], dtype=torch.float64)
    for dtype in (torch.float32, torch.float64):
        y = far.to(dtype)
        one, other = (mix(y, "gelu", approximate) for mix in (fused, reference))
        torch.testing.assert_close(one[:, 1:], other[:, 1:], rtol=0, atol=1e-15, equal_nan=True)
        assert one[1, 3].isnan()


@pytest.mark.parametrize("kind", ["gelu", "glu"])
def test_threads_change_no_bit(kind, same_by_any_threads):
    y, *weights = drawn(kind, rows=(7, 3001))
    same_by_any_threads(lambda: results(fused, y, kind, "none", *weights))


def test_the_module_compiles_what_is_worth_it(monkeypatch):
    monkeypatch.setattr(mixing, "fused", lambda y, *_: y + 41)
    module = Mixing(W, "glu")
    many, few = torch.zeros(1 << 11, W), torch.zeros(3, W)
    assert torch.equal(module(many), many + 41)
    assert module(few).max() < 41
    assert module.bfloat16()(many.bfloat16()).max() < 41
