"""Scans with one diagonal matrix: every method against the loop, forward and backward."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.kernels import diagonal
from fsa2lrnn.extra.baselines.kernels.diagonal import METHODS, scan_diagonal


def drawn(batch, length, n=4, dtype=torch.float64):
    """Rates of absolute value 0.99, which hide nothing."""
    generator = torch.Generator().manual_seed(0)
    angle = torch.randn(n, generator=generator, dtype=torch.float64)
    rates = 0.99 * torch.cat([angle.cos(), angle.sin()])
    v = torch.randn(batch, length, 2 * n, generator=generator, dtype=torch.float64)
    x0 = torch.randn(batch, 2 * n, generator=generator, dtype=torch.float64)
    return [x.to(dtype).requires_grad_() for x in (rates, v, x0)]


def results(given, method):
    x = scan_diagonal(*given, method)
    dx = torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return [x, *torch.autograd.grad((x * dx).sum(), given, materialize_grads=True, allow_unused=True)]


@pytest.mark.parametrize("method", ["pscan", "fused"])
@pytest.mark.parametrize("batch", [0, 1, 5])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 21])
def test_agrees_with_the_loop(length, batch, method):
    given = drawn(batch, length)
    for one, other in zip(results(given, method), results(given, "sequential"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("method", ["pscan", "fused"])
def test_agrees_in_single_precision_and_from_slices(method):
    given = [x.detach()[..., ::2].requires_grad_() for x in drawn(3, 40, 32, torch.float32)]
    for one, other in zip(results(given, method), results(given, "sequential"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-2)


def test_planes_are_complex_numbers():
    rates, v, x0 = (x.detach() for x in drawn(2, 5))
    complex_rates, complex_v, x = (torch.complex(*each.chunk(2, -1)) for each in (rates, v, x0))
    for k, found in enumerate(scan_diagonal(rates, v, x0, "sequential").unbind(1)):
        x = complex_rates * x + complex_v[:, k]
        torch.testing.assert_close(torch.complex(*found.chunk(2, -1)), x)


def test_threads_change_no_bit(same_by_any_threads):
    given = drawn(7, 21)
    same_by_any_threads(lambda: results(given, "fused"))


def test_little_work_is_not_worth_compiling(monkeypatch):
    monkeypatch.setitem(METHODS, "fused", lambda *_: pytest.fail("compiled"))
    scan_diagonal(*drawn(2, 5))


def test_what_the_compiled_one_does_not_take_is_refused():
    rates, v, x0 = (x.detach() for x in drawn(1, 2))
    wording = "rates float64 on cpu, v float32 on cpu, x0 float64 on cpu: the compiled diagonal scan takes float32"
    with pytest.raises(UnsupportedFormat, match=wording):
        scan_diagonal(rates, v.float(), x0, "fused")
    with pytest.raises(UnsupportedFormat, match="scan method 'chunked' is not known: choose one of auto, sequential"):
        scan_diagonal(rates, v, x0, "chunked")
    assert diagonal.fused(rates, v, x0).shape == v.shape
