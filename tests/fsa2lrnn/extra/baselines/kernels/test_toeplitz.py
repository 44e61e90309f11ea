"""Short causal convolutions: the compiled ones against matrices that are written out, forward and backward."""

import pytest
import torch
from torch.autograd import gradcheck

from fsa2lrnn.extra.baselines.kernels import toeplitz

TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-5}


def drawn(batch, length, channels, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = ((batch, length, channels), (length, channels), (batch, length, channels))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def results(convolve, u, K, dy):
    y = convolve(u, K)
    return [y, *torch.autograd.grad(y, (u, K), dy)]


@pytest.mark.parametrize("batch", [0, 1, 5])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 21])
def test_compiled_agrees_with_the_reference(length, batch):
    given = drawn(batch, length, 4)
    for one, other in zip(results(toeplitz.fused, *given), results(toeplitz.reference, *given), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("channels", "dtype"), [(3, torch.float64), (16, torch.float32)])
def test_it_agrees_for_other_widths_and_types(channels, dtype):
    given = drawn(2, 19, channels, dtype)
    for one, other in zip(results(toeplitz.fused, *given), results(toeplitz.reference, *given), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=10 * TOLERANCE[dtype])


def test_gradcheck_and_inputs_that_are_not_contiguous():
    u, K, _ = drawn(2, 9, 8)
    u, K = (x.detach()[..., ::2].requires_grad_() for x in (u, K))
    assert gradcheck(toeplitz.fused, (u, K))
    torch.testing.assert_close(toeplitz.fused(u, K), toeplitz.reference(u, K))


def test_threads_change_no_bit(same_by_any_threads):
    given = drawn(7, 21, 4)
    same_by_any_threads(lambda: results(toeplitz.fused, *given))


def test_little_work_is_not_worth_compiling(monkeypatch):
    monkeypatch.setattr(toeplitz, "fused", lambda *_: pytest.fail("compiled"))
    u, K, _ = drawn(2, 9, 4)
    toeplitz.convolve(u, K)
