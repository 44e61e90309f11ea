"""The column rules: what they keep (T2), what they bound, and what the released one does to one-hot blocks."""

import pytest
import torch

from fsa2lrnn.lrnn.normalise import METHODS, keeps, normalise, one_hot_columns, one_hot_rows, reference, released_scale
from fsa2lrnn.lrnn.normalise.column_kernels import kernels, takes

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
def test_clip_bounds_every_column_and_moves_no_short_one(p):
    A = torch.randn(50, 6, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 0.3
    norms = torch.linalg.vector_norm(A, ord=p, dim=-2)
    assert (norms < 1).any()
    assert (norms > 1).any()
    clipped = reference(A, "clip", p)
    assert (torch.linalg.vector_norm(clipped, ord=p, dim=-2) <= 1 + 1e-12).all()
    short = (norms <= 1).unsqueeze(-2).expand_as(A)
    assert torch.equal(clipped[short], A[short])


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
def test_clip_has_finite_gradients_at_zero_and_at_one_hot_columns(p):
    A = torch.zeros(3, 4, 4, dtype=torch.float64)
    A[1, 2, :] = 1
    A.requires_grad_()
    (reference(A, "clip", p) ** 2).sum().backward()
    assert A.grad is not None
    assert A.grad.isfinite().all()


def test_released_centres_every_column_and_scales_by_the_largest_of_any_order():
    A = torch.randn(10, 5, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    out = reference(A, "released", 1.2)
    assert out.mean(-2).abs().max() < 1e-15
    assert torch.linalg.vector_norm(out, ord=1.2, dim=-2).amax(-1).sub(1).abs().max() < 1e-12
    assert [released_scale(5, p) for p in (1e4, 1e39, 1e308)] == pytest.approx([1.25] * 3)


@pytest.mark.parametrize(("b", "scale"), [(8, 0.74), (5, 0.78), (2, 1.12)])
def test_released_scales_a_permutation_by_the_stated_factor(b, scale):
    P = torch.eye(b, dtype=torch.float64).roll(1, 0)
    x = torch.arange(b, dtype=torch.float64)
    x -= x.mean()
    moved = reference(P, "released", 1.2) @ x
    assert round(released_scale(b, 1.2), 2) == scale
    torch.testing.assert_close(moved, released_scale(b, 1.2) * (P @ x))


ORDERS = [1.0, 1 + 2.0**-52, 1.2, 2.0, 1e3, 1e38, 3.4e38, 1e39, 1e308]


def kept_blocks(b, dtype):
    """All columns of zeros, of both signs, and at most one 1 or −1, in blocks enough for either method."""
    columns = torch.cat([torch.eye(b), -torch.eye(b), torch.zeros(1, b), -torch.zeros(1, b)])
    choice = torch.randint(len(columns), (3000 // b**2 + 1, b), generator=torch.Generator().manual_seed(b))
    return columns[choice].mT.to(dtype)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_method_keeps_columns_with_one_entry_bit_for_bit(dtype, p):
    for b in (1, 2, 3, 8):
        A = kept_blocks(b, dtype)
        assert keeps(A, "clip")
        for method in METHODS:
            if method == "reference" or takes(A):
                found = normalise(A, "clip", p, method)
                assert torch.equal(found, A)
                assert torch.equal(found.signbit(), A.signbit())


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("method", METHODS)
def test_no_order_makes_more_of_a_column_or_no_number(method, p):
    """At an order where powers leave the format's range, what is longer than 1 may come out shorter, never longer."""
    A = torch.tensor([[[3.0, 0.5], [1.0, -0.25]]]).expand(600, 2, 2)
    found = normalise(A, "clip", p, method)
    assert not found.isnan().any()
    assert (found.abs() <= A.abs() * (1 + 1e-6)).all()
    assert (found.abs() <= 1 + 1e-6).all()


@pytest.mark.parametrize("value", [0.5, 2.0, 1 + 2.0**-23, 2.0**-149, float("inf"), float("nan")])
def test_nothing_else_is_said_to_be_kept(value):
    """Though much else is: what is kept by an argument, not by a try."""
    A = torch.eye(3)
    A[1, 1] = value
    assert not keeps(A, "clip")
    assert keeps(A, "none")


def test_nothing_else_is_said_to_be_left_alone():
    A = torch.eye(3)
    A[0, 1] = -1
    assert not keeps(A, "clip")
    assert not torch.equal(normalise(A, "clip", 1.0), A)
    assert not keeps(torch.eye(3), "released")


def test_a_kernel_that_is_given_an_order_beyond_its_format_would_not_keep_them():
    """What `bounded` is for: p − 1 as float32 is infinite, and 0 times that no number."""
    A = torch.eye(2).contiguous()
    y, norms = torch.empty(1, 2, 2), torch.empty(1, 2)
    powers = torch.tensor([torch.inf, 0.0, -1.0, 0.0]).repeat_interleave(2)
    kernels("clip", 2).forward(*(part.flatten().numpy() for part in (A, powers, y, norms)), (0, 1))
    assert y.isnan().any()


def test_columns_are_one_hot_at_the_first_of_the_largest_and_stay():
    A = torch.tensor([[1.0, 3.0, 0.0], [1.0, 2.0, 5.0], [0.0, 3.0, -1.0]])
    assert one_hot_columns(A).tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert one_hot_rows(A).tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0]]
    A = torch.eye(4)[torch.tensor([[2, 0, 0, 1], [3, 3, 3, 3]])].mT
    assert torch.equal(normalise(A, "onehot", 1.2), A)


@pytest.mark.parametrize("odd", [torch.nan, torch.inf, -torch.inf])
def test_the_value_is_one_hot_whatever_the_entries(odd):
    A = torch.tensor([[0.0, odd], [1.0, odd]], requires_grad=True)
    assert one_hot_columns(A).sum(0).tolist() == [1, 1]


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_the_rule_is_one_whatever_the_method(method):
    A = torch.randn(3, 4, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(normalise(A, "onehot", 1.2, method), one_hot_columns(A))


@pytest.mark.parametrize("dim", [-2, -1])
def test_the_gradient_is_that_of_the_softmax(dim):
    A = torch.randn(3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weights = torch.randn(3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    hard = (one_hot_columns if dim == -2 else one_hot_rows)(A, 0.4)
    (found,) = torch.autograd.grad((hard * weights).sum(), A)
    (wanted,) = torch.autograd.grad(((A / 0.4).softmax(dim) * weights).sum(), A)
    torch.testing.assert_close(found, wanted, rtol=1e-14, atol=1e-14)
    assert not torch.equal(hard, (A / 0.4).softmax(dim))
