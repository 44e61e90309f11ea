"""The plain layers are the functions that they are measured against."""

import pytest
import torch

from experiments.benchmarks import layers, plain_layers


@pytest.mark.parametrize("name", [name for name in plain_layers.FORWARDS if name != "s4"])
def test_plain_layers_are_ours(name):
    layer = layers.new_layer(name)
    u = torch.randn(2, 12, layers.WIDTH, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for weight in layer.parameters():
            weight += 0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    ours, plain = layer.outputs(u, layer.initial_state(2)), plain_layers.FORWARDS[name](layer, u)
    torch.testing.assert_close(plain, ours, rtol=1e-3, atol=1e-3)


def test_the_plain_s4_is_ours_with_its_c_as_the_released_code_keeps_it():
    from fsa2lrnn.extra.baselines.channels import complex_of
    from fsa2lrnn.extra.baselines.kernels.generating import untruncated

    layer = layers.new_layer("s4")
    u = torch.randn(2, 13, layers.WIDTH, generator=torch.Generator().manual_seed(0))
    plain = plain_layers.s4(layer, u)
    with torch.no_grad():
        C = untruncated(layer.system().transition, complex_of(layer.C), 13)
        layer.C.copy_(torch.view_as_real(C).float())
    torch.testing.assert_close(plain, layer.outputs(u, layer.initial_state(2)), rtol=1e-2, atol=1e-2)
