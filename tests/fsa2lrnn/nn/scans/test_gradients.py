"""Gradients of every scan against finite differences; the reference in integers; schedules, work and memory."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from fsa2lrnn.nn.scans import METHODS, TOKEN_METHODS, scan, scan_tokens
from fsa2lrnn.nn.scans.cpu import chunked, schedule, sequential

N_ROWS = 3
ENTRIES = 40  # of A, up to which every entry of the Jacobian is differenced
RUNS = [*((scan, method) for method in METHODS), *((scan_tokens, method) for method in TOKEN_METHODS)]
METHOD = pytest.mark.parametrize(("run", "method"), RUNS, ids=lambda part: getattr(part, "__name__", part))


def inputs(run, heads, batch, length, b):
    """What the scan is a function of, norm-preserving so that gradients neither vanish nor grow; and the tokens."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(N_ROWS, (batch, length), generator=generator)
    shape = (batch, length) if run is scan else (N_ROWS,)
    A = torch.linalg.qr(torch.randn(*shape, heads, b, b, generator=generator, dtype=torch.float64)).Q.contiguous()
    v = torch.randn(*shape, heads, b, generator=generator, dtype=torch.float64)
    x0 = torch.randn(batch, heads, b, generator=generator, dtype=torch.float64)
    return tokens, [t.requires_grad_() for t in (A, v, x0)]


def function(run, method, tokens):
    if run is scan:
        return lambda *parts: scan(*parts, method=method)
    return lambda *parts: scan_tokens(tokens, *parts, method=method)


def check(run, method, shape):
    tokens, parts = inputs(run, *shape)
    return gradcheck(function(run, method, tokens), parts, fast_mode=parts[0].numel() > ENTRIES)


@METHOD
@pytest.mark.parametrize("needed", [n for n in product((True, False), repeat=3) if any(n)])
def test_gradients_of_some_inputs(run, method, needed):
    tokens, parts = inputs(run, 1, 2, 3, 2)
    some = [part.detach().requires_grad_(wanted) for part, wanted in zip(parts, needed, strict=True)]
    assert gradcheck(function(run, method, tokens), some)


@METHOD
def test_gradients_of_and_for_what_is_not_contiguous(run, method):
    tokens, (A, v, x0) = inputs(run, 2, 2, 3, 2)
    strided = [
        A.detach().transpose(0, -3).contiguous().transpose(0, -3).mT,
        v.detach().repeat_interleave(2, -1)[..., ::2],
        x0.detach().transpose(0, 1).contiguous().transpose(0, 1),
    ]
    assert not any(part.is_contiguous() for part in strided)
    tokens = tokens.T.contiguous().T
    turned, strided = function(run, method, tokens), [part.requires_grad_() for part in strided]
    assert gradcheck(turned, strided)
    assert gradcheck(lambda *given: turned(*given).transpose(0, 2).flip(1)[..., ::2], strided)  # nor of its gradient


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


def test_the_schedule_and_the_example_of_the_papers_appendix():
    assert schedule(7) == [
        [["A1"], ["A3"], ["A5"], ["A7"]], [["A2", "A3A2"], ["A6", "A7A6"]], [["A4", "A5A4", "A6A5A4", "A7A6A5A4"]],
    ]  # fmt: skip
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


@pytest.mark.parametrize(("method", "length"), [("pscan", 8), ("chunked", 64)])
def test_an_overflowing_product_is_nan_where_the_sequential_scan_stays_zero(method, length):
    A, zero = torch.full((1, length, 1, 1, 1), 1e30), torch.zeros(1, length, 1, 1)
    assert not scan(A, zero, torch.zeros(1, 1), "sequential").any()
    assert scan(A, zero, torch.zeros(1, 1), method).isnan().any()


@pytest.mark.parametrize("length", [1, 2, 3, 4, 9, 10, 100, 1000, 1024, 4096])
def test_it_takes_about_three_roots_of_the_length_in_steps(length):
    root, b = math.isqrt(length), 2
    parts = torch.zeros(1, length, 1, b, b), torch.zeros(1, length, 1, b), torch.zeros(1, 1, b)
    with FlopCounterMode(display=False) as counter:
        chunked(*parts)
    assert counter.get_total_flops() // 2 <= (length + root) * b * b * (b + 3)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        chunked(*parts)
    calls = sum(event.count for event in seen.key_averages() if event.key in ("aten::bmm", "aten::mm"))
    assert 0 < calls <= 3 * root + 2


def test_a_chunk_goes_on_where_the_one_before_ended():
    """The one state that is not carried would show: each letter adds 1."""
    for length in range(1, 40):
        ones = torch.ones(1, length, 1, 1)
        assert chunked(ones.unsqueeze(-1), ones, torch.zeros(1, 1, 1)).flatten().tolist() == list(range(1, length + 1))
