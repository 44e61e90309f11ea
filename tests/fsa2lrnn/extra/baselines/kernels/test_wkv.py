"""RWKV-4's average: the stable form against its definition, the compiled one against the stable form."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.kernels import wkv as averages
from fsa2lrnn.extra.baselines.kernels.wkv import METHODS, NOTHING, wkv


def drawn(batch, length, channels=4, dtype=torch.float64, new=True):
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


def results(given, method):
    """Averages, what the state stands for, and gradients."""
    y, state = wkv(*given, method)
    p, q, o = state.unbind(1)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    total = (y * dy).sum()
    if y.shape[1]:
        total = total + (p / q).sum() + (q.log() + o).sum()
    return [y, state, *torch.autograd.grad(total, given[:4], materialize_grads=True, allow_unused=True)]


def test_the_stable_form_is_the_definition():
    w, u, k, v, state = (x.detach() for x in drawn(2, 9))
    k = k.clamp(max=5)
    y, _ = wkv(w, u, k, v, state, "sequential")
    for t in range(9):
        exponents = [(t - 1 - i) * w + k[:, i] for i in range(t)] + [u + k[:, t]]
        weights = torch.stack(exponents, 1).softmax(1)
        torch.testing.assert_close(y[:, t], (weights * v[:, : t + 1]).sum(1))


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("batch", [0, 1, 5])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 21])
@pytest.mark.parametrize("method", ["fused", "weighted"])
def test_the_fast_ones_agree_with_the_stable_form(method, length, batch, new, monkeypatch):
    monkeypatch.setattr(averages, "_PIECE", 8)
    given = drawn(batch, length, new=new)
    for one, other in zip(results(given, method), results(given, "sequential"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", ["fused", "weighted"])
def test_the_fast_ones_agree_in_single_precision(method):
    given = drawn(3, 40, 16, torch.float32)
    for one, other in zip(results(given, method), results(given, "sequential"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_gradients_of_the_initial_state_are_those_of_what_it_stands_for():
    given = drawn(2, 7, new=False)
    found = []
    for method in METHODS:
        y, last = wkv(*given, method)
        found.append(torch.autograd.grad(y.square().sum() + (last[:, 0] / last[:, 1]).sum(), given[4])[0])
    for one in found[1:]:
        torch.testing.assert_close(one, found[0])


def test_a_word_in_pieces_is_the_word():
    w, u, k, v, state = drawn(2, 9)
    whole, after = wkv(w, u, k, v, state, "fused")
    first, between = wkv(w, u, k[:, :4], v[:, :4], state, "fused")
    second, last = wkv(w, u, k[:, 4:], v[:, 4:], between, "fused")
    assert torch.equal(torch.cat([first, second], 1), whole)
    assert torch.equal(last, after)


def test_threads_change_no_bit(same_by_any_threads):
    given = drawn(7, 21)
    same_by_any_threads(lambda: results(given, "fused"))


def test_what_is_no_number_shows():
    w, u, k, v, state = (x.detach() for x in drawn(1, 5))
    v[0, 2, 0] = torch.nan
    for method in METHODS:
        y = wkv(w, u, k, v, state, method)[0]
        assert y[0, 2:, 0].isnan().all()
        assert y[0, :2].isfinite().all()


def test_what_the_compiled_one_does_not_take_is_refused():
    w, *others = (x.detach() for x in drawn(1, 2))
    wording = "w float32 on cpu, u float64 on cpu, .*: the compiled average takes float32 or float64 on the CPU"
    with pytest.raises(UnsupportedFormat, match=wording):
        wkv(w.float(), *others, "fused")
    with pytest.raises(
        UnsupportedFormat, match="scan method 'pscan' is not known: choose one of auto, sequential, fused, weighted"
    ):
        wkv(w, *others, "pscan")
