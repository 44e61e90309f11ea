"""Scans with one dense matrix against the loop, forward and backward."""

import pytest
import torch
from torch.autograd import gradcheck

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.kernels.constant import scan_constant


def drawn(batch, length, n=3):
    generator = torch.Generator().manual_seed(0)
    A = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64)).Q
    v, x0 = (torch.randn(*shape, n, generator=generator, dtype=torch.float64) for shape in ((batch, length), (batch,)))
    return [x.requires_grad_() for x in (A, v, x0)]


def results(given, method):
    x = scan_constant(*given, method)
    dx = torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return [x, *torch.autograd.grad((x * dx).sum(), given, materialize_grads=True, allow_unused=True)]


@pytest.mark.parametrize("batch", [0, 1, 4])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 21])
def test_agrees_with_the_loop(length, batch):
    given = drawn(batch, length)
    for one, other in zip(results(given, "fused"), results(given, "sequential"), strict=True):
        torch.testing.assert_close(one, other)


def test_gradcheck():
    assert gradcheck(lambda *given: scan_constant(*given, "fused"), drawn(2, 5))


def test_unknown_methods_are_refused():
    with pytest.raises(
        UnsupportedFormat, match="scan method 'pscan' is not known: choose one of auto, sequential, fused"
    ):
        scan_constant(*drawn(1, 2), "pscan")
