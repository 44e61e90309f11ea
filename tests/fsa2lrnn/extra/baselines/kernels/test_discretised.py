"""λ, B and C with derivatives written out, against those of autograd."""

from dataclasses import replace

import pytest
import torch

from fsa2lrnn.extra.baselines.kernels.discretised import planes_of
from fsa2lrnn.extra.baselines.lru import LRUConfig, LRULayer
from fsa2lrnn.extra.baselines.s5 import S5Config, S5Layer

S5 = S5Config(6, ssm_size=8)
CASES = [
    LRUConfig(6, states=5),
    S5,
    replace(S5, clip_eigs=False, conj_sym=False),
    replace(S5, discretisation="bilinear"),
    replace(S5, discretisation="bilinear", clip_eigs=False),
]


def layer_of(config):
    torch.manual_seed(0)
    return (LRULayer if isinstance(config, LRUConfig) else S5Layer)(6, config).double()


def both(layer):
    """What `planes_of` and autograd make of the parameters, and of gradients."""
    parameters = [layer.get_parameter(name) for name in ("B", "C", *layer.numbers)]
    found = []
    for made in (planes_of(layer.poles, layer.factor, *parameters), layer.spectrum()[:3]):
        generator = torch.Generator().manual_seed(1)
        towards = [torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.dtype) for x in made]
        found.append([*made, *torch.autograd.grad(made, parameters, towards)])
    return found


@pytest.mark.parametrize("config", CASES)
def test_agrees_with_autograd(config):
    for one, other in zip(*both(layer_of(config)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("config", [S5, replace(S5, clip_eigs=False), replace(S5, discretisation="bilinear")])
def test_agrees_at_poles_that_are_clipped_or_none(config):
    layer = layer_of(config)
    with torch.no_grad():
        layer.Lambda_re[:] = torch.tensor([0.3, 0.0, -1e-4, -1e-3])
        layer.Lambda_im[:] = torch.tensor([-1.0, 0.0 if config.clip_eigs else 1e-9, 1e-4, -1e-3])
        layer.log_step[:] = -1.0
    for one, other in zip(*both(layer), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)  # autograd's own quotients lose digits near 0


def test_single_precision_is_rounded_once():
    layer = layer_of(S5).float()
    for one, other in zip(*both(layer), strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_what_is_not_finite_shows():
    layer = layer_of(replace(S5, clip_eigs=False))
    with torch.no_grad():
        layer.Lambda_re[0], layer.Lambda_re[1] = 1e6, torch.nan
    for one, other in zip(*both(layer), strict=True):
        assert torch.equal(one.isfinite(), other.isfinite())
