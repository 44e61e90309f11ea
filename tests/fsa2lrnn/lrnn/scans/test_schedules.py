"""The reference in exact integers; the parallel and the chunked scan: schedules, work, and their one difference."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from fsa2lrnn.lrnn.scans import METHODS, scan
from fsa2lrnn.lrnn.scans.reference import chunked, schedule, sequential


@given(st.integers(0, 2), st.integers(0, 6), st.integers(1, 2), st.integers(1, 3), st.integers(0, 99))
def test_it_is_the_recurrence_word_by_word_and_head_by_head(batch, length, heads, b, seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 3, (batch, length, heads, b, b))
    v, x0 = rng.integers(-2, 3, (batch, length, heads, b)), rng.integers(-2, 3, (batch, heads, b))
    computed = sequential(*(torch.from_numpy(part).double() for part in (A, v, x0)))
    assert computed.shape == (batch, length, heads, b)
    for i in range(batch):
        for h in range(heads):
            x = x0[i, h]
            for k in range(length):
                x = A[i, k, h] @ x + v[i, k, h]
                assert computed[i, k, h].tolist() == x.tolist()


def test_the_schedule_printed_in_the_papers_appendix():
    assert schedule(7) == [
        [["A1"], ["A3"], ["A5"], ["A7"]],
        [["A2", "A3A2"], ["A6", "A7A6"]],
        [["A4", "A5A4", "A6A5A4", "A7A6A5A4"]],
    ]


@pytest.mark.parametrize("k", range(1, 8))
def test_round_r_carries_a_state_over_the_places_whose_bit_r_is_set(k):
    """Place j, bit r set, takes in the state before its stretch, which starts where the r lower bits of j are 0."""
    for r, used in enumerate(schedule(2**k - 1)):
        products = [product for group in used for product in group]
        stretches = [range(j, (j >> r << r) - 1, -1) for j in range(2**k) if j >> r & 1]
        assert products == ["".join(f"A{i}" for i in stretch) for stretch in stretches]


@pytest.mark.parametrize("length", [-1, 0, 2, 6, 8])
def test_the_schedule_names_the_lengths_it_is_for(length):
    with pytest.raises(ValueError, match=rf"length {length} is not 2\^k - 1: take \d+ or \d+; pscan pads"):
        schedule(length)


def test_the_papers_example_to_its_four_printed_decimals():
    torch.manual_seed(1)
    A, u, x0 = torch.randn(1, 7, 2, 2), torch.randn(1, 7, 2), torch.randn(1, 2)
    printed = [
        [0.8310, -0.2477], [0.5167, -1.4218], [1.1399, 1.3024], [0.9628, 1.3150],
        [-1.5308, -1.6903], [-3.6631, 1.6082], [1.7805, 7.1659], [2.5068, -0.6256],
    ]  # fmt: skip
    for method in METHODS:
        x = scan(A.unsqueeze(2), u.unsqueeze(2), x0, method)[:, :, 0]
        found = torch.cat([x0, x[0]]).tolist()
        assert [[round(value, 4) for value in row] for row in found] == printed


@pytest.mark.parametrize(("method", "length"), [("pscan", 8), ("chunked", 64)])
def test_an_overflowing_product_is_nan_where_the_sequential_scan_stays_zero(method, length):
    A, zero = torch.full((1, length, 1, 1, 1), 1e30), torch.zeros(1, length, 1, 1)
    assert not scan(A, zero, torch.zeros(1, 1), "sequential").any()
    assert scan(A, zero, torch.zeros(1, 1), method).isnan().any()


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


def test_a_chunk_goes_on_where_the_one_before_ended():
    """The one state that is not carried would show: each letter adds 1."""
    for length in range(1, 40):
        ones = torch.ones(1, length, 1, 1)
        assert chunked(ones.unsqueeze(-1), ones, torch.zeros(1, 1, 1)).flatten().tolist() == list(range(1, length + 1))
