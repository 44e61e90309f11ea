"""What is the chunked scan's own: how many steps wait for one another, how its work grows, and its one difference."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from fsa2lrnn.lrnn.scans import scan
from fsa2lrnn.lrnn.scans.reference import chunked


def products(length, b=2):
    """(matrix products called, scalar multiplications) of one scan with one head."""
    A, v, x0 = torch.zeros(1, length, 1, b, b), torch.zeros(1, length, 1, b), torch.zeros(1, 1, b)
    with FlopCounterMode(display=False) as counter:
        chunked(A, v, x0)
    calls = []
    with _Calls(calls):
        chunked(A, v, x0)
    return len(calls), counter.get_total_flops() // 2


class _Calls(TorchDispatchMode):
    def __init__(self, calls):
        super().__init__()
        self._calls = calls

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.bmm.default, torch.ops.aten.mm.default):
            self._calls.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 9, 10, 100, 1000, 1024, 4096])
def test_it_takes_about_three_roots_of_the_length_in_steps(length):
    calls, multiplications = products(length)
    root = math.isqrt(length)
    assert calls <= 3 * root + 2
    b = 2
    assert multiplications <= (length + root) * b * b * (b + 3)


def test_its_work_grows_as_the_length_does():
    few, many = products(1024)[1], products(16 * 1024)[1]
    assert many / few == pytest.approx(16, rel=0.05)


def test_an_overflowing_product_is_nan_where_the_sequential_scan_stays_zero():
    A, zero = torch.full((1, 64, 1, 1, 1), 1e30), torch.zeros(1, 64, 1, 1)
    assert not scan(A, zero, torch.zeros(1, 1), "sequential").any()
    assert scan(A, zero, torch.zeros(1, 1), "chunked").isnan().any()


def test_a_chunk_goes_on_where_the_one_before_ended():
    """The one state that is not carried would show: each letter adds 1."""
    for length in range(1, 40):
        ones = torch.ones(1, length, 1, 1)
        assert chunked(ones.unsqueeze(-1), ones, torch.zeros(1, 1, 1)).flatten().tolist() == list(range(1, length + 1))
