"""The column rules' definition: what they keep, what they bound, and what the released one does to one-hot blocks."""

import pytest
import torch

from fsa2lrnn.lrnn.normalise import reference, released_scale

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0, 7.5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_clip_leaves_one_hot_and_zero_columns_bit_for_bit(dtype, p):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(9, (20, 9), generator=generator)
    A = torch.nn.functional.one_hot(rows, 9).transpose(-1, -2).to(dtype)
    A[:, :, 4] = 0
    assert torch.equal(reference(A, "clip", p), A)


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0, 7.5])
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_clip_leaves_lanes_of_plus_and_minus_one_bit_for_bit(dtype, b, p):
    """Also where they are padded to the size of a block beside them."""
    A = torch.zeros(3, b, b, dtype=dtype)
    A[:, 0, 0] = torch.tensor([-1, 0, 1])
    assert torch.equal(reference(A, "clip", p), A)


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


def test_released_centres_every_column_and_scales_by_the_largest():
    A = torch.randn(10, 5, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    out = reference(A, "released", 1.2)
    assert out.mean(-2).abs().max() < 1e-15
    assert torch.linalg.vector_norm(out, ord=1.2, dim=-2).amax(-1).sub(1).abs().max() < 1e-12


@pytest.mark.parametrize(("b", "scale"), [(8, 0.74), (5, 0.78), (2, 1.12)])
def test_released_scales_a_permutation_by_the_stated_factor(b, scale):
    P = torch.eye(b, dtype=torch.float64).roll(1, 0)
    x = torch.arange(b, dtype=torch.float64)
    x -= x.mean()
    moved = reference(P, "released", 1.2) @ x
    assert round(released_scale(b, 1.2), 2) == scale
    torch.testing.assert_close(moved, released_scale(b, 1.2) * (P @ x))


def test_released_gives_nan_where_all_columns_are_constant():
    assert reference(torch.ones(3, 3), "released", 1.2).isnan().all()


def test_none_is_the_identity():
    A = torch.randn(2, 3, 3)
    assert reference(A, "none", 1.2) is A


def test_the_released_scale_of_any_order():
    assert [released_scale(5, p) for p in (1e4, 1e39, 1e308)] == pytest.approx([1.25] * 3)
