"""What is the fused scans' own, the compiled loops themselves, and the scan of hard tables against its definition."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import block as hard
from fsa2lrnn.nn.layers.block import hard_scan, takes
from fsa2lrnn.nn.normalise import normalise, one_hot_rows
from fsa2lrnn.nn.scans import scan, scan_tokens


def inputs(batch, length, heads, b, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    A = torch.linalg.qr(torch.randn(batch, length, heads, b, b, generator=generator)).Q
    v, x0 = (torch.randn(*shape, b, generator=generator) for shape in ((batch, length, heads), (batch, heads)))
    return [t.to(dtype).requires_grad_() for t in (A, v, x0)]


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_other_dtypes_are_refused_by_name(dtype):
    A, v, x0 = (t.detach().to(dtype) for t in inputs(1, 2, 1, 2))
    name = str(dtype).removeprefix("torch.")
    wording = f"A {name} on cpu, v {name} on cpu, x0 {name} on cpu: the fused scan takes float32, .* choose the scan "
    with pytest.raises(UnsupportedFormat, match=wording):
        scan(A, v, x0, "fused")
    with pytest.raises(UnsupportedFormat, match=wording):
        scan_tokens(torch.zeros(1, 2, dtype=torch.int64), A[0], v[0], x0, "fused")
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


@pytest.mark.long_cases("6-1")
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


TEMPERATURE = 0.7
SHAPES = [(3, 7, 4, 3, 5), (1, 1, 2, 1, 1), (2, 2, 3, 1, 4), (5, 33, 3, 2, 6), (2, 3, 1, 4, 2), (2, 40, 2, 2, 17)]


def defined(index, logits, state):
    """The definition: x_k = A(a_k) x_{k−1} with one-hot columns, by einsum, letter after letter."""
    A, x, states = normalise(logits, "onehot", 1.2, temperature=TEMPERATURE), state, []
    for a in index.unbind(1):
        x = torch.einsum("bhij,bhj->bhi", A[a], x)
        states.append(x)
    return torch.stack(states, dim=1)


def problem(shape, dtype=torch.float64):
    batch, length, n, heads, b = shape
    draw = torch.Generator().manual_seed(sum(shape))
    logits = torch.randn(n, heads, b, b, dtype=dtype, generator=draw).requires_grad_()
    start = torch.randn(heads, b, dtype=dtype, generator=draw).requires_grad_()
    return torch.randint(n, (batch, length), generator=draw), logits, start


@pytest.mark.long_cases("shape0", "shape1")
@pytest.mark.parametrize("shape", SHAPES)
def test_value_and_gradient_are_those_of_the_definition(shape):
    index, logits, start = problem(shape)
    weights = torch.randn(*index.shape, *start.shape, dtype=torch.float64)

    def run(scan):
        state = one_hot_rows(start, TEMPERATURE).expand(len(index), *start.shape)
        x = scan(index, logits, state)
        return x, torch.autograd.grad(x, [logits, start], weights)

    (x, found), (y, wanted) = run(lambda *given: hard_scan(*given, TEMPERATURE)), run(defined)
    assert torch.equal(x, y)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    assert start.numel() == 2 or any(gradient.abs().max() > 0 for gradient in found) or shape[-1] == 1


@pytest.mark.parametrize("shape", [(0, 4, 2, 2, 3), (2, 0, 2, 2, 3)])
def test_nothing_to_read(shape):
    index, logits, start = problem(shape)
    state = one_hot_rows(start).expand(shape[0], *start.shape)
    x = hard_scan(index, logits, state)
    assert x.shape == (*index.shape, 2, 3)
    of_logits, of_start = torch.autograd.grad(x.sum(), [logits, start])
    assert not of_logits.any()
    assert not of_start.any()


def test_several_threads_and_other_layouts_read_the_same(monkeypatch):
    index, logits, start = problem((6, 8, 4, 3, 5))
    state = one_hot_rows(start).expand(8, 3, 5)
    assert torch.equal(hard_scan(index.T, logits, state), hard_scan(index.T.contiguous(), logits, state))
    apart = logits.detach().mT.contiguous().mT
    assert torch.equal(hard_scan(index.T, apart, state), hard_scan(index.T, logits, state))
    index, logits, start = problem((4, 9, 4, 3, 5))
    state = one_hot_rows(start).detach().expand(4, 3, 5)
    weights = torch.randn(4, 9, 3, 5, dtype=torch.float64)
    (one,) = torch.autograd.grad(hard_scan(index, logits, state), [logits], weights)
    monkeypatch.setattr(hard, "thread_count", lambda _: 2)
    (two,) = torch.autograd.grad(hard_scan(index, logits, state), [logits], weights)
    assert torch.equal(one, two)


def test_what_it_does_not_take_is_refused():
    index, logits, start = problem((2, 3, 2, 2, 3))
    state = one_hot_rows(start).detach().expand(2, 2, 3)
    for wrong in (state * 0.5, state.float(), state + 1, torch.zeros_like(state)):
        assert not takes(index, logits, wrong)
    with pytest.raises(UnsupportedFormat, match=r"states float32 on cpu: the hard scan takes float32 or float64"):
        hard_scan(index, logits, state.float())
