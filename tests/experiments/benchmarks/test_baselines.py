"""The baselines compute what they are compared with, and cost what they are said to cost."""

import pytest
import torch

from experiments.benchmarks.baselines import authors_pscan, authors_sequential
from fsa2lrnn.lrnn import scan


@pytest.mark.parametrize("baseline", [authors_pscan, authors_sequential])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 13])
def test_a_baseline_is_a_scan_forward_and_backward(length, baseline):
    generator = torch.Generator().manual_seed(0)
    A = torch.linalg.qr(torch.randn(2, length, 3, 4, 4, generator=generator, dtype=torch.float64)).Q
    v, x0 = (torch.randn(*shape, 3, 4, generator=generator, dtype=torch.float64) for shape in ((2, length), ()))
    results = []
    for run in (baseline, lambda *inputs: scan(*inputs, method="sequential")):
        inputs = [t.clone().requires_grad_() for t in (A, v, x0)]
        x = run(*inputs)
        (x * torch.linspace(-1, 1, x.numel()).reshape(x.shape)).sum().backward()
        results.append([x, *(t.grad for t in inputs)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_the_papers_example():
    torch.manual_seed(1)
    A, u, x0 = torch.randn(1, 7, 2, 2), torch.randn(1, 7, 2), torch.randn(1, 2)
    for baseline in (authors_sequential, authors_pscan):
        x = baseline(A[:, :, None], u[:, :, None], x0)
        assert [round(value, 4) for value in x[0, -1, 0].tolist()] == [2.5068, -0.6256]
