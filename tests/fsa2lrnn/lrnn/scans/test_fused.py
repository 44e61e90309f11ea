"""What is the fused scans' own: refused inputs, threads, memory, code on disk; and the compiled loops themselves."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.compiled.vectors import WIDEST
from fsa2lrnn.lrnn.scans import scan, scan_tokens
from fsa2lrnn.lrnn.scans.cpu_kernels import kernels


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


def test_other_dtypes_mixed_ones_and_other_devices_are_refused():
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


SIZES = [1, 2, 3, 4, 5, 7, 8, 16, 17, 20]


def integers(rng, *shape):
    return rng.integers(-2, 3, shape).astype(np.float64)


def definition(A, v, x0, dx):
    """x, dA, dv, dx0 for A (T,b,b), v (T,b), x0 (b,), dx (T,b)."""
    x, g, states, dA, dv = x0, np.zeros_like(x0), [x0], [], []
    for A_k, v_k in zip(A, v, strict=True):
        x = A_k @ x + v_k
        states.append(x)
    for k in range(len(A) - 1, -1, -1):
        g = g + dx[k]
        dv.append(g)
        dA.append(np.outer(g, states[k]))
        g = A[k].T @ g
    b = len(x0)
    return np.reshape(states[1:], (-1, b)), np.reshape(dA[::-1], (-1, b, b)), np.reshape(dv[::-1], (-1, b)), g


@pytest.mark.parametrize("b", SIZES)
@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_part_is_done_by_the_definition_and_the_rest_left_alone(length, b):
    rng, batch, heads = np.random.default_rng(b), 3, 3
    A, v = integers(rng, batch, length, heads, b, b), integers(rng, batch, length, heads, b)
    x0, dx = integers(rng, batch, heads, b), integers(rng, batch, length, heads, b)
    x, dA, dv, dx0 = (np.full_like(like, 77) for like in (v, A, v, x0))
    sizes, part = (length, heads, b), (1, 3, 0, 2)
    run = kernels(b)
    run.forward(A.ravel(), v.ravel(), x0.ravel(), x.ravel(), sizes, part)
    aligned = aligned_copy(dA)
    gradients = [aligned.ravel(), dv.ravel(), dx0.ravel()]
    run.backward(A.ravel(), x0.ravel(), x.ravel(), dx.ravel(), *gradients, True, sizes, part)
    without = [np.full(dA.size, 77.0), dv.copy().ravel(), dx0.copy().ravel()]
    run.backward(A.ravel(), x0.ravel(), x.ravel(), dx.ravel(), *without, False, sizes, part)
    assert (without[0] == 77).all()
    for one, other in zip(gradients[1:], without[1:], strict=True):
        assert np.array_equal(one, other)
    for n in range(batch):
        for h in range(heads):
            done = 1 <= n < 3 and h < 2
            found = x[n, :, h], aligned[n, :, h], dv[n, :, h], dx0[n, h]
            wanted = definition(A[n, :, h], v[n, :, h], x0[n, h], dx[n, :, h])
            for one, other in zip(found, wanted, strict=True):
                assert np.array_equal(one.ravel(), other.ravel()) if done else (one == 77).all()


@pytest.mark.parametrize("b", SIZES)
@pytest.mark.parametrize("length", [1, 2, 6])
def test_tables_are_looked_up_and_their_gradients_added_up(length, b):
    rng, batch, heads, n_rows = np.random.default_rng(b), 3, 3, 2
    tokens = rng.integers(0, n_rows, (batch, length))
    A, v, x0 = integers(rng, n_rows, heads, b, b), integers(rng, n_rows, heads, b), integers(rng, batch, heads, b)
    dx = integers(rng, batch, length, heads, b)
    x, dA, dv, dx0 = np.full_like(dx, 77), np.zeros_like(A), np.zeros_like(v), np.full_like(x0, 77)
    run, sizes, part = kernels(b), (length, heads, b), (0, 2, 1, 3)
    transposed = np.ascontiguousarray(A.swapaxes(-1, -2))
    run.forward_tokens(tokens.ravel(), transposed.ravel(), v.ravel(), x0.ravel(), x.ravel(), sizes, part)
    gradients = [dA.ravel(), dv.ravel(), dx0.ravel()]
    run.backward_tokens(tokens.ravel(), A.ravel(), x0.ravel(), x.ravel(), dx.ravel(), *gradients, sizes, part)
    wanted_dA, wanted_dv = np.zeros_like(A), np.zeros_like(v)
    for n in range(batch):
        for h in range(heads):
            if n == 2 or h == 0:
                assert (x[n, :, h] == 77).all()
                assert (dx0[n, h] == 77).all()
                continue
            word = tokens[n]
            states, of_A, of_v, of_x0 = definition(A[word, h], v[word, h], x0[n, h], dx[n, :, h])
            assert np.array_equal(x[n, :, h], states)
            assert np.array_equal(dx0[n, h], of_x0)
            np.add.at(wanted_dA[:, h], word, of_A.reshape(-1, b, b))
            np.add.at(wanted_dv[:, h], word, of_v)
    assert np.array_equal(dA, wanted_dA)
    assert np.array_equal(dv, wanted_dv)


def aligned_copy(array):
    """The same at a multiple of 64 bytes, as the kernels want what they stream into."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[:] = array
    return copy


@pytest.mark.parametrize("b", [3, 17])
def test_no_letters_no_work(b):
    empty, some = np.empty(0), [np.full(b, 7.0) for _ in range(2)]
    run, rest = kernels(b), ((0, 1, b), (0, 1, 0, 1))
    run.forward(empty, empty, some[0], empty, *rest)
    run.backward(empty, some[0], empty, empty, empty, empty, some[1], True, *rest)
    assert all((array == 7).all() for array in some)


def test_one_compilation_serves_all_large_blocks():
    assert kernels(WIDEST + 1) is kernels(51)
    assert kernels(WIDEST) is not kernels(WIDEST + 1)
    assert kernels(8) is kernels(8)
