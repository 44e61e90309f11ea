"""Kernels of single layers against their definitions."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers.channel_layer import normal_plus_low_rank
from fsa2lrnn.nn.layers.channel_scans import METHODS as PLAIN
from fsa2lrnn.nn.layers.channel_scans import System
from fsa2lrnn.nn.layers.liquid_s4 import METHODS, liquid
from fsa2lrnn.nn.layers.rwkv import METHODS as WKV_METHODS
from fsa2lrnn.nn.layers.rwkv import NOTHING, wkv
from fsa2lrnn.nn.layers.s4 import cauchy_taps, truncated
from fsa2lrnn.nn.layers.transitions import Transition, low_rank, respond

from ..official_checks.official import untruncated
from .gradients import assert_all_close, with_gradients

H = 3


@pytest.fixture
def legs():
    start = normal_plus_low_rank(8)
    poles, B, P = (torch.from_numpy(x).expand(H, -1) for x in start)
    C = torch.randn(H, 4, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    dt = torch.tensor([[0.01], [0.1], [0.3]], dtype=torch.float64)
    return poles, P, B, C, dt, *low_rank(poles, P, B, dt)


@pytest.mark.parametrize("length", [1, 2, 3, 39, 40])
def test_cauchy_kernels_are_the_impulse_response(legs, length):
    poles, P, B, C, dt, transition, inputs = legs
    K = cauchy_taps(poles, P, B, truncated(transition, C, length), dt, length)
    torch.testing.assert_close(K, respond(transition, inputs, C, length).K.T, rtol=1e-10, atol=1e-12)


def test_responses_wrap_around_unless_truncated_or_inverted(legs):
    poles, P, B, C, dt, transition, inputs = legs
    K = cauchy_taps(poles, P, B, C, dt, 8)
    assert not torch.allclose(K, respond(transition, inputs, C, 8).K.T, rtol=1e-2)
    *_, C, _, transition, _ = legs
    torch.testing.assert_close(untruncated(transition, truncated(transition, C, 16), 16), C)


def test_unknown_methods_are_refused():
    system, u, state = drawn_of_liquid(1, 2)
    wording = "u float32 on cpu, state float64 on cpu: the compiled liquid recurrence takes float32 or float64"
    with pytest.raises(UnsupportedFormat, match=wording):
        liquid(system, u.float(), state, "fused")
    with pytest.raises(
        UnsupportedFormat, match="scan method 'fft' is not known: choose one of auto, sequential, fused"
    ):
        liquid(system, u, state, "fft")
    assert list(METHODS) == ["sequential", "fused"]
    with pytest.raises(UnsupportedFormat, match="scan method 'weighted' is not known: choose one of auto, sequential"):
        wkv(*drawn_of_wkv(1, 2), "weighted")


def drawn_of_liquid(batch, length, mixes=True, dtype=torch.float64, channels=4, n=3):
    generator = torch.Generator().manual_seed(0)
    sizes = (0.5, 0.2, 0.2, 0.2, 1)
    a, q, r, B, C = (
        (s * torch.randn(channels, n, dtype=torch.complex128, generator=generator)).requires_grad_() for s in sizes
    )
    D = torch.randn(channels, dtype=torch.float64, generator=generator).requires_grad_()
    u = torch.randn(batch, length, channels, generator=generator).to(dtype).requires_grad_()
    state = torch.randn(batch, channels, 2 * n, generator=generator).to(dtype).requires_grad_()
    return System(Transition(a, q, r) if mixes else Transition(a), B, C, D), u, state


def results_of_liquid(system, u, state, method):
    leaves = (*system.transition, *system[1:], u, state)
    return with_gradients(liquid(system, u, state, method), leaves)


@pytest.mark.parametrize("mixes", [True, False])
@pytest.mark.parametrize("batch", [0, 1, 5])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 21])
def test_compiled_agrees_with_the_loop(length, batch, mixes):
    given = drawn_of_liquid(batch, length, mixes)
    assert_all_close(results_of_liquid(*given, "fused"), results_of_liquid(*given, "sequential"), 1e-10, 1e-11)


def test_stable_forms_are_their_definitions():
    system, u, state = drawn_of_liquid(2, 9)
    small = 1e-6 * u.detach()
    start = torch.zeros_like(state)
    y, _ = liquid(system, small, start, "sequential")
    torch.testing.assert_close(y, PLAIN["sequential"](system, small, start)[0], rtol=1e-4, atol=0)
    y, _ = liquid(system, u, start, "sequential")
    assert not torch.allclose(y, PLAIN["sequential"](system, u, start)[0], rtol=1e-2)
    w, u, k, v, state = (x.detach() for x in drawn_of_wkv(2, 9))
    k = k.clamp(max=5)
    y, _ = wkv(w, u, k, v, state, "sequential")
    for t in range(9):
        exponents = [(t - 1 - i) * w + k[:, i] for i in range(t)] + [u + k[:, t]]
        weights = torch.stack(exponents, 1).softmax(1)
        torch.testing.assert_close(y[:, t], (weights * v[:, : t + 1]).sum(1))


@pytest.mark.long
def test_no_bit_depends_on_threads(same_by_any_threads):
    given = drawn_of_liquid(7, 21)
    same_by_any_threads(lambda: results_of_liquid(*given, "fused"))
    given = drawn_of_wkv(7, 21)
    same_by_any_threads(lambda: results_of_wkv(given, "fused"))


def drawn_of_wkv(batch, length, channels=4, dtype=torch.float64, new=True):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    state = normal(batch, 3, channels).abs()
    if new:
        state = torch.tensor([0, 0, NOTHING]).double().view(1, 3, 1).expand(batch, 3, channels)
    k = 5 * normal(batch, length, channels)
    if batch and length > 3:
        k[0, 2, 1] = 300  # e^300 is no number in single precision
    given = [-normal(channels).exp(), normal(channels), k, normal(batch, length, channels), state]
    return [x.to(dtype).clone().requires_grad_() for x in given]


def results_of_wkv(given, method):
    """Averages, what the state stands for, and gradients."""
    y, state = wkv(*given, method)
    p, q, o = state.unbind(1)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    total = (y * dy).sum()
    if y.shape[1]:
        total = total + (p / q).sum() + (q.log() + o).sum()
    return [y, state, *torch.autograd.grad(total, given[:4], materialize_grads=True, allow_unused=True)]


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("batch", [0, 1, 5])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 21])
@pytest.mark.parametrize("method", ["pscan", "fused"])
def test_the_fast_ones_agree_with_the_stable_form(method, length, batch, new):
    given = drawn_of_wkv(batch, length, new=new)
    assert_all_close(results_of_wkv(given, method), results_of_wkv(given, "sequential"), 1e-10, 1e-12)


@pytest.mark.parametrize("method", ["pscan", "fused"])
def test_the_fast_ones_agree_in_single_precision(method):
    given = drawn_of_wkv(3, 40, 16, torch.float32)
    assert_all_close(results_of_wkv(given, method), results_of_wkv(given, "sequential"), 1e-3, 1e-4)


def test_words_in_pieces_and_numbers_that_are_none():
    given = drawn_of_wkv(2, 7, new=False)
    found = []
    for method in WKV_METHODS:
        y, last = wkv(*given, method)
        found.append(torch.autograd.grad(y.square().sum() + (last[:, 0] / last[:, 1]).sum(), given[4])[0])
    for one in found[1:]:
        torch.testing.assert_close(one, found[0])
    w, u, k, v, state = drawn_of_wkv(2, 9)
    whole, after = wkv(w, u, k, v, state, "fused")
    first, between = wkv(w, u, k[:, :4], v[:, :4], state, "fused")
    second, last = wkv(w, u, k[:, 4:], v[:, 4:], between, "fused")
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(last, after)
    w, u, k, v, state = (x.detach() for x in drawn_of_wkv(1, 5))
    v[0, 2, 0] = torch.nan
    for method in WKV_METHODS:
        y = wkv(w, u, k, v, state, method)[0]
        assert y[0, 2:, 0].isnan().all()
        assert y[0, :2].isfinite().all()
