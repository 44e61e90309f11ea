"""What S5 and LRU share, by LRU: products of planes are those of complex numbers."""

import torch

from fsa2lrnn.extra.baselines.lru import LRUConfig, LRULayer


def test_planes_compute_in_complex_numbers():
    torch.manual_seed(0)
    layer = LRULayer(4, LRUConfig(4, states=3, mixing="none")).double()
    rates, B, C = layer.discretised()
    u = torch.randn(2, 6, 4, dtype=torch.float64)
    y, state = layer(u, layer.initial_state(2))
    x = torch.zeros(2, 3, dtype=torch.complex128)
    for k in range(6):
        x = rates * x + u[:, k].to(B.dtype) @ B.T
        torch.testing.assert_close(y[:, k], (x @ C.T).real + layer.D * u[:, k])
    torch.testing.assert_close(state, torch.cat([x.real, x.imag], -1))
    assert layer.family == "lti-diagonalisable"
