"""What is the fused scans' own: inputs they refuse, threads, memory, and code kept on disk for the next process."""

import subprocess
import sys

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.scans import scan, scan_tokens


def inputs(batch, length, heads, b, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    A = torch.linalg.qr(torch.randn(batch, length, heads, b, b, generator=generator)).Q
    v, x0 = (torch.randn(*shape, b, generator=generator) for shape in ((batch, length, heads), (batch, heads)))
    return [t.to(dtype).requires_grad_() for t in (A, v, x0)]


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_other_dtypes_are_refused_by_name(dtype):
    A, v, x0 = (t.detach().to(dtype) for t in inputs(1, 2, 1, 2))
    name = str(dtype).removeprefix("torch.")
    wording = f"A {name} on cpu, v {name} on cpu, x0 {name} on cpu: the fused scan takes float32, .* choose method="
    with pytest.raises(UnsupportedFormat, match=wording):
        scan(A, v, x0, "fused")
    with pytest.raises(UnsupportedFormat, match=wording):
        scan_tokens(torch.zeros(1, 2, dtype=torch.int64), A[0], v[0], x0, "fused")


def test_mixed_dtypes_and_other_devices_are_refused():
    A, v, x0 = (t.detach() for t in inputs(1, 2, 1, 2))
    with pytest.raises(UnsupportedFormat, match="A float32 on cpu, v float64 on cpu, x0 float32 on cpu"):
        scan(A, v.double(), x0, "fused")
    with pytest.raises(UnsupportedFormat, match="A float32 on meta, v float32 on meta"):
        scan(A.to("meta"), v.to("meta"), x0.to("meta"), "fused")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_have_states_in_single_precision(dtype):
    half = inputs(2, 300, 2, 3, dtype)
    x = scan(*half, method="fused")
    x.float().sum().backward()
    single = [t.detach().float().requires_grad_() for t in half]
    wanted = scan(*single, method="sequential")
    wanted.sum().backward()
    assert x.dtype == half[0].grad.dtype == dtype
    rounding = torch.finfo(dtype).eps
    torch.testing.assert_close(x.float(), wanted, rtol=rounding, atol=1e-4)
    for t, other in zip(half, single, strict=True):
        torch.testing.assert_close(t.grad.float(), other.grad, rtol=rounding, atol=1e-3)


@pytest.mark.parametrize(("batch", "heads"), [(6, 1), (1, 5), (7, 8), (2, 3)])
def test_threads_change_no_bit(same_by_any_threads, batch, heads):
    tokens = torch.randint(3, (batch, 90), generator=torch.Generator().manual_seed(0))

    def results():
        dense, table = inputs(batch, 90, heads, 4), inputs(1, 3, heads, 4)
        A, v, x0 = (t[0] for t in table)
        x, y = scan(*dense, method="fused"), scan_tokens(tokens, A, v, x0, "fused")
        (x * x).sum().backward()
        (y * y).sum().backward()
        return [x, y, *(t.grad for t in dense + table)]

    same_by_any_threads(results)


def test_a_second_derivative_is_refused_not_wrong():
    A, v, x0 = inputs(1, 3, 1, 2)
    (gradient,) = torch.autograd.grad(scan(A, v, x0, "fused").square().sum(), A, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


CODE = """
import resource, sys, torch
from fsa2lrnn.lrnn import scan, scan_tokens
from fsa2lrnn.lrnn.scans.cpu_kernels import kernels
A, v = torch.eye(8).expand(3, 8, 8, 8).requires_grad_(), torch.zeros(3, 8, 8)
run = lambda n: scan_tokens(torch.zeros(1, n, dtype=torch.int64), A, v, torch.zeros(8, 8), "fused").sum().backward()
run(1000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(int(sys.argv[1]))
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
scan(A[None], v[None], torch.zeros(8, 8), "fused").sum().backward()
print(sum(kernel.stats.cache_misses.total() for kernel in kernels(8)))
"""


def test_another_process_compiles_nothing_and_tables_take_memory_for_the_states_alone():
    """256 bytes a letter for x, as many for its gradient; A written out would take 2,048 more, and its gradient too."""
    A, v, x0 = inputs(1, 3, 8, 8)
    scan(A, v, x0, "fused").sum().backward()
    scan_tokens(torch.zeros(1, 4, dtype=torch.int64), A[0], v[0], x0, "fused").sum().backward()
    length = 200_000
    process = subprocess.run([sys.executable, "-c", CODE, str(length)], capture_output=True, text=True, check=True)
    memory, compiled = (int(line) for line in process.stdout.split())
    assert memory < 1_000 * length
    assert compiled == 0
