"""The compiled column rules against the reference, forward and backward, and what is their own."""

import math

import numpy as np
import pytest
import torch
from numba import njit
from torch.autograd import gradcheck

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.compiled.vectors import WIDEST, instruction
from fsa2lrnn.lrnn.normalise import choose_method, normalise, reference
from fsa2lrnn.lrnn.normalise.column_kernels import Powers, _powers, kernels

RULES = ["clip", "released"]
ORDERS = [1.0, 1.2, 2.0, 7.5]
SIZES = [3, 5, 8, WIDEST]
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


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("b", SIZES)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_agrees_with_the_reference_forward_and_backward(dtype, b, rule):
    A = blocks(b, dtype)
    for p in ORDERS:
        assert_close(results(A, rule, p, "fused"), results(A, rule, p, "reference"), TOLERANCE[dtype])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("b", [2, 3])
def test_gradcheck_in_double_precision(b, rule):
    A = torch.randn(4, b, b, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert gradcheck(lambda A: normalise(A, rule, 1.2, "fused"), A.requires_grad_())


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("p", ORDERS)
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


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("n_largest", [1, 2, 4])
def test_columns_that_are_largest_together_share_the_gradient(n_largest, p):
    A = torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A[:, :n_largest] = 3 * A[:, :1]  # equal columns: norms that are equal to the last bit
    assert_close(results(A, "released", p, "fused"), results(A, "released", p, "reference"), 1e-13)


def test_where_columns_are_constant_or_no_numbers():
    A = torch.randn(5, 3, 3)
    A[2] = torch.arange(3.0)
    for tensor in results(A, "released", 1.2, "fused"):
        assert tensor.isnan().flatten(1).all(1).tolist() == [False, False, True, False, False]
        assert tensor.isnan().flatten(1).any(1).tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_no_number_shows_where_the_reference_shows_it(wrong, rule):
    A = torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(0))
    A[1, 2, 0] = wrong
    found, wanted = (normalise(A, rule, 1.2, method) for method in ("fused", "reference"))
    torch.testing.assert_close(found, wanted, equal_nan=True)
    assert found.isnan().any()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(0, 3, 3), (5, 0, 3, 3), (3, 3), (2, 3, 4, 3, 3)])
def test_any_number_of_blocks_in_any_layout(shape, rule):
    A = torch.randn(shape, dtype=torch.float64)
    assert_close(results(A.mT, rule, 1.2, "fused"), results(A.mT, rule, 1.2, "reference"), 1e-13)


@pytest.mark.parametrize("rule", RULES)
def test_threads_change_no_bit(same_by_any_threads, rule):
    A = blocks(8, torch.float32, n=7)
    same_by_any_threads(lambda: results(A, rule, 1.2, "fused"))


def test_unknown_methods_and_none():
    A = torch.randn(2, 3, 3)
    assert normalise(A, "none", 1.2, "fused") is A
    with pytest.raises(UnsupportedFormat, match="method 'fast' is not known: choose one of auto, reference, fused"):
        normalise(torch.zeros(2, 2), "clip", 1.2, "fast")


def test_a_second_derivative_is_refused_not_wrong():
    A = torch.randn(2, 3, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(normalise(A, "clip", 1.2, "fused").square().sum(), A, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize(
    ("A", "named"),
    [
        (torch.zeros(3, 17, 17), "size 17, float32 on cpu"),
        (torch.zeros(3, 2, 2, dtype=torch.bfloat16), "size 2, bfloat16 on cpu"),
        (torch.zeros(3, 2, 2, device="meta"), "size 2, float32 on meta"),
        (torch.zeros(3, 0, 0), "size 0, float32 on cpu"),
    ],
)
def test_what_the_kernels_do_not_take_is_refused_by_name_and_not_chosen(A, named):
    with pytest.raises(UnsupportedFormat, match=f'blocks of {named}: .* choose method="reference"'):
        normalise(A, "clip", 1.2, "fused")
    assert choose_method(A.expand(10_000, *A.shape)) == "reference"


def test_what_auto_chooses():
    enough = WIDEST**2 * 8
    assert choose_method(torch.empty(enough // 4, 2, 2)) == "fused"
    assert choose_method(torch.empty(enough // 4 - 1, 2, 2)) == "reference"
    assert choose_method(torch.empty(128, 40, 8, 8, 8, dtype=torch.float64)) == "fused"
    A = torch.randn(128, 8, 8)
    assert torch.equal(normalise(A, "released", 1.2), normalise(A, "released", 1.2, "fused"))
    assert torch.equal(normalise(A[:3], "released", 1.2), reference(A[:3], "released", 1.2))


@pytest.mark.parametrize("method", ["auto", "reference", "fused"])
def test_the_door_refuses_what_is_no_rule_no_order_and_no_block(method):
    A = torch.zeros(2, 3, 3)
    with pytest.raises(UnsupportedFormat, match="column rule 'mean' is not known: choose one of clip, released, none"):
        normalise(A, "mean", 1.2, method)
    for p in (0.5, 0.0, float("inf"), float("nan")):
        with pytest.raises(UnsupportedFormat, match=f"p = {p}: a column norm needs a finite p of at least 1"):
            normalise(A, "clip", p, method)
    for shape in ((2, 3, 2), (3,)):
        with pytest.raises(ValueError, match=r"shape \(.*\) does not fit: give blocks \(…, b, b\)"):
            normalise(torch.zeros(shape), "clip", 1.2, method)


WIDTH = 4


def _write_power(rows, x, i, powers, zero, out):
    short, rest = rows.load(powers, zero), rows.load(powers, zero, 1)
    rows.store(rows.power(rows.load(x, i), short, rest), out, i)


_power = instruction(_write_power, Powers)


@njit
def _all(x, powers, out):
    for i in range(0, len(x), WIDTH):
        _power(WIDTH, (x, i, powers, 0, out))


def power(x, q):
    """x^q, entry by entry."""
    dtype = torch.from_numpy(x).dtype
    out = np.empty_like(x)
    _all(x, _powers(q + 1, WIDTH, dtype).numpy(), out)
    return out


@pytest.mark.parametrize("q", [0.0, 0.2, 0.5, 1.0, 6.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_are_those_of_the_standard_library(dtype, q):
    span = math.log(np.finfo(dtype).max) / max(q, 1) * 0.95
    x = np.exp(np.random.default_rng(0).uniform(-span, span, 4_000)).astype(dtype)
    x[:400] = np.linspace(0.9, 1.1, 400)
    wanted = np.array([np.longdouble(value) ** np.longdouble(q + 1 - 1) for value in x.tolist()])
    error = np.abs(power(x, q) / wanted - 1)
    assert error.max() < 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("q", [0.0, 0.2, 1.0, 6.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_is_one_and_zero_and_what_is_nearly_zero_are_zero(dtype, q):
    x = np.array([1, 0, np.finfo(dtype).tiny / 2, 1], dtype)
    assert power(x, q).tolist() == [1, 0, 0, 1]


def test_what_leaves_the_range_ends_at_its_ends_and_what_is_no_number_is_positive():
    largest = np.finfo(np.float32).max
    x = np.array([largest, 1e30, 1e-30, 1e-36], np.float32)
    found = power(x, 6.5)
    assert (found[:2] >= 2.0**127).all()
    assert (found[2:] <= 2.0**-126).all()
    for wrong in (np.nan, np.inf):
        assert (power(np.full(WIDTH, wrong), 0.2) > 0).all()


@pytest.mark.parametrize("rule", ["clip", "released"])
def test_a_part_is_done_and_the_rest_left_alone(rule):
    b, n = 3, 5
    A = torch.randn(n, b, b, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    wanted = reference(A, rule, 1.2)
    (dA,) = torch.autograd.grad(wanted.sum(), A)
    run, powers = kernels(rule, b), _powers(1.2, b, torch.float64).numpy()
    y, norms, found = np.full((n, b, b), 77.0), np.full((n, b), 77.0), np.full((n, b, b), 77.0)
    run.forward(A.detach().numpy().ravel(), powers, y.ravel(), norms.ravel(), (1, 4))
    run.backward(y.ravel(), norms.ravel(), np.ones(n * b * b), powers, found.ravel(), (2, 4))
    np.testing.assert_allclose(y[1:4], wanted.detach()[1:4], rtol=1e-13)
    np.testing.assert_allclose(found[2:4], dA[2:4], rtol=1e-11, atol=1e-14)
    for array, done in ((y, [1, 2, 3]), (norms, [1, 2, 3]), (found, [2, 3])):
        assert (np.delete(array, done, axis=0) == 77).all()
        assert (array[done] != 77).all()
