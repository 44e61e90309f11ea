"""T2: what the column rule keeps, it keeps by every method, for every order, in every dtype; and `keeps` says which."""

import pytest
import torch

from fsa2lrnn.lrnn.normalise import METHODS, keeps, normalise
from fsa2lrnn.lrnn.normalise.column_kernels import kernels, takes

ORDERS = [1.0, 1 + 2.0**-52, 1.2, 2.0, 1e3, 1e38, 3.4e38, 1e39, 1e308]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


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


def test_two_entries_in_a_column_are_not_said_to_be_kept():
    A = torch.eye(3)
    A[0, 1] = -1
    assert not keeps(A, "clip")
    assert not torch.equal(normalise(A, "clip", 1.0), A)


def test_the_released_rule_is_said_to_keep_nothing():
    assert not keeps(torch.eye(3), "released")


def test_a_kernel_that_is_given_an_order_beyond_its_format_would_not_keep_them():
    """What `bounded` is for: p − 1 as float32 is infinite, and 0 times that no number."""
    A = torch.eye(2).contiguous()
    y, norms = torch.empty(1, 2, 2), torch.empty(1, 2)
    powers = torch.tensor([torch.inf, 0.0, -1.0, 0.0]).repeat_interleave(2)
    kernels("clip", 2).forward(*(part.flatten().numpy() for part in (A, powers, y, norms)), (0, 1))
    assert y.isnan().any()
