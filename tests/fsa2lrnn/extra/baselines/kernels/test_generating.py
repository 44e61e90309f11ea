"""Cauchy kernels against powers of the transition."""

import pytest
import torch

from fsa2lrnn.extra.baselines.kernels import hippo
from fsa2lrnn.extra.baselines.kernels.generating import cauchy_taps, truncated, untruncated
from fsa2lrnn.extra.baselines.kernels.response import respond
from fsa2lrnn.extra.baselines.kernels.transition import low_rank

H = 3


@pytest.fixture
def legs():
    start = hippo.normal_plus_low_rank(8)
    poles, B, P = (torch.from_numpy(x).expand(H, -1) for x in start)
    C = torch.randn(H, 4, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    dt = torch.tensor([[0.01], [0.1], [0.3]], dtype=torch.float64)
    return poles, P, B, C, dt, *low_rank(poles, P, B, dt)


@pytest.mark.parametrize("length", [1, 2, 3, 39, 40])
def test_cauchy_kernels_are_the_impulse_response(legs, length):
    poles, P, B, C, dt, transition, inputs = legs
    K = cauchy_taps(poles, P, B, truncated(transition, C, length), dt, length)
    torch.testing.assert_close(K, respond(transition, inputs, C, length).K.T, rtol=1e-10, atol=1e-12)


def test_without_truncation_the_response_wraps_around(legs):
    poles, P, B, C, dt, transition, inputs = legs
    K = cauchy_taps(poles, P, B, C, dt, 8)
    assert not torch.allclose(K, respond(transition, inputs, C, 8).K.T, rtol=1e-2)


def test_untruncated_is_the_inverse(legs):
    *_, C, _, transition, _ = legs
    torch.testing.assert_close(untruncated(transition, truncated(transition, C, 16), 16), C)
