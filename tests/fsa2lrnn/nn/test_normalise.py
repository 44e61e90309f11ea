"""The column rules: what they keep (T2) and bound, and the compiled ones against the reference."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.normalise import (
    METHODS,
    choose_method,
    keeps,
    normalise,
    one_hot_columns,
    one_hot_rows,
    paper_rule_scale,
    reference,
    takes,
)

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


def test_the_paper_rule_and_one_hot_columns():
    A = torch.randn(10, 5, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    out = reference(A, "paper", 1.2)
    assert out.mean(-2).abs().max() < 1e-15
    assert torch.linalg.vector_norm(out, ord=1.2, dim=-2).amax(-1).sub(1).abs().max() < 1e-12
    assert [paper_rule_scale(5, p) for p in (1e4, 1e39, 1e308)] == pytest.approx([1.25] * 3)
    A = torch.tensor([[1.0, 3.0, 0.0], [1.0, 2.0, 5.0], [0.0, 3.0, -1.0]])
    assert one_hot_columns(A).tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert one_hot_rows(A).tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0]]
    A = torch.eye(4)[torch.tensor([[2, 0, 0, 1], [3, 3, 3, 3]])].mT
    assert torch.equal(normalise(A, "onehot", 1.2), A)


@pytest.mark.parametrize(("b", "scale"), [(8, 0.74), (5, 0.78), (2, 1.12)])
def test_paper_rule_scales_a_permutation_by_the_stated_factor(b, scale):
    P = torch.eye(b, dtype=torch.float64).roll(1, 0)
    x = torch.arange(b, dtype=torch.float64)
    x -= x.mean()
    moved = reference(P, "paper", 1.2) @ x
    assert round(paper_rule_scale(b, 1.2), 2) == scale
    torch.testing.assert_close(moved, paper_rule_scale(b, 1.2) * (P @ x))


ORDERS = [1.0, 1 + 2.0**-52, 1.2, 2.0, 1e3, 1e38, 3.4e38, 1e39, 1e308]


def kept_blocks(b, dtype):
    """All columns of zeros, of both signs, and at most one 1 or −1, in blocks enough for either method."""
    columns = torch.cat([torch.eye(b), -torch.eye(b), torch.zeros(1, b), -torch.zeros(1, b)])
    choice = torch.randint(len(columns), (3000 // b**2 + 1, b), generator=torch.Generator().manual_seed(b))
    return columns[choice].mT.to(dtype)


@pytest.mark.long_cases("dtype0-1.0", "dtype1-1.0")
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
    A[1, 1], A[0, 1] = 1, -1
    assert not keeps(A, "clip")
    assert not torch.equal(normalise(A, "clip", 1.0), A)
    assert not keeps(torch.eye(3), "paper")


@pytest.mark.parametrize("dim", [-2, -1])
def test_the_gradient_is_that_of_the_softmax(dim):
    A = torch.randn(3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weights = torch.randn(3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    hard = (one_hot_columns if dim == -2 else one_hot_rows)(A, 0.4)
    (found,) = torch.autograd.grad((hard * weights).sum(), A)
    (wanted,) = torch.autograd.grad(((A / 0.4).softmax(dim) * weights).sum(), A)
    torch.testing.assert_close(found, wanted, rtol=1e-14, atol=1e-14)
    assert not torch.equal(hard, (A / 0.4).softmax(dim))


RULES = ["clip", "paper"]
ORDERS_FUSED = [1.0, 1.2, 2.0, 7.5]
SIZES = [3, 5, 8, 17]
TOLERANCE = {torch.float64: 1e-13, torch.float32: 2e-5}


def blocks(b, dtype=torch.float64, n=60, seed=0):
    """Blocks of all magnitudes, some of their columns zero and some one-hot."""
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(n, 2, b, b, generator=generator, dtype=torch.float64)
    A *= torch.logspace(-3, 3, n, dtype=torch.float64)[:, None, None, None]
    A[::3, :, :, 0] = 0
    A[1::3, :, :, 1] = torch.eye(b, dtype=torch.float64)[0]
    return A.to(dtype)


def results(A, rule, p, method):
    """The blocks, and the gradient of a sum in which each number counts otherwise."""
    A = A.detach().clone().requires_grad_()
    y = normalise(A, rule, p, method)
    weight = torch.randn(y.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (y * weight.to(y.dtype)).sum().backward()
    return y, A.grad


def assert_close(found, wanted, tolerance):
    """Within `tolerance` of the largest number in each block."""
    for one, other in zip(found, wanted, strict=True):
        assert ((one - other).abs() <= tolerance * other.abs().amax((-1, -2), keepdim=True)).all()


# Each kernel takes seconds to compile: every size and rule in one precision, in turn.
@pytest.mark.long_cases(
    "dtype1-3-paper", "dtype3-5-paper", "dtype4-8-clip", "dtype5-8-paper", "dtype6-17-clip", "dtype7-17-paper"
)
@pytest.mark.parametrize(
    ("dtype", "b", "rule"),
    [([*TOLERANCE][(i + j) % 2], b, rule) for i, b in enumerate(SIZES) for j, rule in enumerate(RULES)],
)
def test_agrees_with_the_reference_forward_and_backward(dtype, b, rule):
    A = blocks(b, dtype)
    for p in ORDERS_FUSED:
        assert_close(results(A, rule, p, "fused"), results(A, rule, p, "reference"), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("p", ORDERS_FUSED)
@pytest.mark.parametrize("b", [1, 2, 5, 8])
def test_clip_leaves_short_columns_and_their_gradients_bit_for_bit(b, p, dtype):
    zeros_and_ones = torch.eye(b)[torch.randint(b, (20, b), generator=torch.Generator().manual_seed(0))].mT
    zeros_and_ones[:5, :, 0] = 0
    zeros_and_ones[5:9] *= -1
    short = torch.rand(20, b, b, generator=torch.Generator().manual_seed(1)) / b
    for A in (zeros_and_ones, short):
        A = A.to(dtype)
        assert torch.equal(normalise(A, "clip", p, "fused"), A)
    A, dy = short.to(dtype).requires_grad_(), torch.randn(20, b, b, dtype=dtype)
    is_long = torch.linalg.vector_norm(A.detach(), ord=p, dim=-2, keepdim=True) > 0.99
    normalise(A, "clip", p, "fused").backward(dy)
    assert torch.equal(A.grad.where(~is_long, 0), dy.where(~is_long, 0))


@pytest.mark.long_cases("1-1.0", "1-1.2")
@pytest.mark.parametrize("p", ORDERS_FUSED)
@pytest.mark.parametrize("n_largest", [1, 2, 4])
def test_columns_that_are_largest_together_share_the_gradient(n_largest, p):
    A = torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A[:, :n_largest] = 3 * A[:, :1]  # equal columns: norms that are equal to the last bit
    assert_close(results(A, "paper", p, "fused"), results(A, "paper", p, "reference"), 1e-13)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_no_number_shows_where_the_reference_shows_it(wrong, rule):
    A = torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(0))
    A[1, 2, 0] = wrong
    found, wanted = (normalise(A, rule, 1.2, method) for method in ("fused", "reference"))
    torch.testing.assert_close(found, wanted, equal_nan=True)
    assert found.isnan().any()


@pytest.mark.long_cases("paper")
@pytest.mark.parametrize("rule", RULES)
def test_threads_change_no_bit(same_by_any_threads, rule):
    A = blocks(8, torch.float32, n=7)
    same_by_any_threads(lambda: results(A, rule, 1.2, "fused"))


def test_auto_none_and_unknown_methods():
    A = torch.randn(2, 3, 3)
    assert normalise(A, "none", 1.2, "fused") is A
    with pytest.raises(UnsupportedFormat, match="method 'fast' is not known: choose one of auto, reference, fused"):
        normalise(torch.zeros(2, 2), "clip", 1.2, "fast")
    enough = 1 << 11
    assert choose_method(torch.empty(enough // 4, 2, 2)) == "fused"
    assert choose_method(torch.empty(enough // 4 - 1, 2, 2)) == "reference"
    assert choose_method(torch.empty(128, 40, 8, 8, 8, dtype=torch.float64)) == "fused"
    A = torch.randn(128, 8, 8)
    assert torch.equal(normalise(A, "paper", 1.2), normalise(A, "paper", 1.2, "fused"))
    assert torch.equal(normalise(A[:3], "paper", 1.2), reference(A[:3], "paper", 1.2))


def test_a_second_derivative_is_refused_not_wrong():
    A = torch.randn(2, 3, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(normalise(A, "clip", 1.2, "fused").square().sum(), A, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize(("A", "named"), [
    (torch.zeros(3, 2, 2, dtype=torch.bfloat16), "size 2, bfloat16 on cpu"),
    (torch.zeros(3, 2, 2, device="meta"), "size 2, float32 on meta"),
    (torch.zeros(3, 0, 0), "size 0, float32 on cpu"),
])  # fmt: skip
def test_what_the_kernels_do_not_take_is_refused_by_name_and_not_chosen(A, named):
    with pytest.raises(UnsupportedFormat, match=f'blocks of {named}: .* choose method="reference"'):
        normalise(A, "clip", 1.2, "fused")
    assert choose_method(A.expand(10_000, *A.shape)) == "reference"


@pytest.mark.parametrize("method", ["auto", "reference", "fused"])
def test_the_door_refuses_what_is_no_rule_no_order_and_no_block(method):
    A = torch.zeros(2, 3, 3)
    with pytest.raises(UnsupportedFormat, match="column rule 'mean' is not known: choose one of clip, paper, none"):
        normalise(A, "mean", 1.2, method)
    for p in (0.5, 0.0, float("inf"), float("nan")):
        with pytest.raises(UnsupportedFormat, match=f"p = {p}: a column norm needs a finite p of at least 1"):
            normalise(A, "clip", p, method)
    for shape in ((2, 3, 2), (3,)):
        with pytest.raises(ValueError, match=r"shape \(.*\) does not fit: give blocks \(…, b, b\)"):
            normalise(torch.zeros(shape), "clip", 1.2, method)
