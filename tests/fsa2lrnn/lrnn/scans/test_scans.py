"""Every scan against the sequential reference, forward and backward, and what the door refuses."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.scans import METHODS, scan

FAST = [method for method in METHODS if method != "sequential"]
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 33]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def norm_preserving(batch, length, heads, b, dtype, seed=0):
    """Orthogonal blocks: Gaussian ones contract, and would hide every numerical difference."""
    generator = torch.Generator().manual_seed(seed)
    A = torch.linalg.qr(torch.randn(batch, length, heads, b, b, generator=generator, dtype=torch.float64)).Q
    v = torch.randn(batch, length, heads, b, generator=generator, dtype=torch.float64)
    x0 = torch.randn(heads, b, generator=generator, dtype=torch.float64)
    return [t.to(dtype).requires_grad_() for t in (A, v, x0)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("method", FAST)
def test_agrees_with_the_reference_forward_and_backward(method, length, batch, dtype):
    results = []
    for name in ("sequential", method):
        inputs = norm_preserving(batch, length, 2, 3, dtype)
        x = scan(*inputs, method=name)
        weight = torch.linspace(-1, 1, x.numel(), dtype=dtype).reshape(x.shape)
        (x * weight).sum().backward()
        results.append([x, *(t.grad if t.grad is not None else torch.zeros_like(t) for t in inputs)])
    for reference, fast in zip(*results, strict=True):
        assert reference.shape == fast.shape
        torch.testing.assert_close(fast, reference, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_gradcheck_in_double_precision(method, length):
    A, v, x0 = norm_preserving(2, length, 1, 2, torch.float64)
    assert gradcheck(lambda *inputs: scan(*inputs, method=method), (A, v, x0))


@pytest.mark.parametrize("method", METHODS)
def test_non_contiguous_inputs(method):
    A, v, x0 = (t.detach() for t in norm_preserving(2, 6, 3, 4, torch.float64))
    strided = [A.transpose(-1, -2), v.flip(1), x0]
    solid = [t.contiguous() for t in strided]
    assert torch.equal(scan(*strided, method=method), scan(*solid, method=method))


@pytest.mark.parametrize("method", METHODS)
def test_an_initial_state_for_each_word(method):
    A, v, x0 = (t.detach() for t in norm_preserving(3, 5, 2, 4, torch.float64))
    own = torch.stack([x0, 2 * x0, -x0])
    together = scan(A, v, own, method=method)
    for i in range(3):
        torch.testing.assert_close(together[i : i + 1], scan(A[i : i + 1], v[i : i + 1], own[i], method=method))


@given(st.data(), st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]))
def test_one_hot_transitions_are_bit_exact_in_every_dtype_and_schedule(data, dtype):
    n, length = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 40))
    maps = data.draw(
        st.lists(st.lists(st.integers(0, n - 1), min_size=n, max_size=n), min_size=length, max_size=length)
    )
    A = torch.zeros(1, length, 1, n, n, dtype=dtype)
    q, states = 0, []
    for k, row in enumerate(maps):
        A[0, k, 0, row, range(n)] = 1
        q = row[q]
        states.append(q)
    x0 = torch.eye(n, dtype=dtype)[:1]
    expected = torch.eye(n, dtype=dtype)[states].reshape(1, length, 1, n)
    for method in METHODS:
        assert torch.equal(scan(A, torch.zeros(1, length, 1, n, dtype=dtype), x0, method), expected)


def test_bad_arguments_are_named():
    A, v, x0 = torch.zeros(1, 2, 1, 3, 3), torch.zeros(1, 2, 1, 3), torch.zeros(1, 3)
    with pytest.raises(
        UnsupportedFormat, match="scan method 'magic' is not known: choose one of auto, sequential, pscan"
    ):
        scan(A, v, x0, "magic")
    with pytest.raises(ValueError, match=r"A \(1, 2, 1, 3, 3\), v \(1, 2, 1, 3\), x0 \(2, 3\) should be"):
        scan(A, v, torch.zeros(2, 3))
    with pytest.raises(ValueError, match="shapes do not fit"):
        scan(A[..., :2], v, x0)
