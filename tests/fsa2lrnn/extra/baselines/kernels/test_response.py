"""Impulse responses: the fast ones against the loop, forward and backward."""

import pytest
import torch

from fsa2lrnn.extra.baselines.kernels import response
from fsa2lrnn.extra.baselines.kernels.transition import Transition, from_planes, planes


def system(channels=4, n=3, mixes=True):
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(channels, n, dtype=torch.complex128, generator=generator) for _ in range(5)]
    parts[0] /= 1.1 * parts[0].abs()
    parts[1] *= 0.3
    a, q, r, B, C = (x.requires_grad_() for x in parts)
    return (Transition(a, q, r) if mixes else Transition(a)), B, C


def loop(transition, B, C, length, least, with_states):
    """States Ā^l B̄ and their readings as the definition has them."""
    x, found = B, [planes(B)[:, :0].reshape(len(B), 0, 2 * B.shape[1])]
    for _ in range(length):
        found.append(planes(x).unsqueeze(1))
        x = transition.times(x)
    states = torch.cat(found, 1)
    states = torch.where(states.abs() < least, 0, states)
    K = 2 * (from_planes(states) * C.unsqueeze(1)).real.sum(-1).T
    return K, states if with_states else states[:, :0]


def results(make, given, length, least, with_states):
    """The response, and the gradients of a sum in which each number counts otherwise."""
    transition, B, C = given
    found, generator = make(transition, B, C, length, least, with_states), torch.Generator().manual_seed(1)
    total = sum((torch.randn(x.shape, dtype=torch.float64, generator=generator) * x).sum() for x in found)
    leaves = [x for x in (*transition, B, C) if x is not None]
    return [*found, *torch.autograd.grad(total, leaves, materialize_grads=True, allow_unused=True)]


@pytest.mark.parametrize("with_states", [False, True])
@pytest.mark.parametrize("mixes", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 13])
@pytest.mark.parametrize("make", [response.fused, response.doubled])
def test_the_fast_ones_agree_with_the_loop(make, length, mixes, with_states):
    given = system(mixes=mixes)
    found, expected = (results(each, given, length, 0.0, with_states) for each in (make, loop))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


def test_small_numbers_of_states_are_zero():
    given = system(mixes=False)
    for make in (response.fused, response.doubled):
        _, states = make(*given, 13, 0.5, True)
        assert ((states == 0) | (states.abs() >= 0.5)).all()
        assert (states == 0).any()


def test_threads_change_no_bit(same_by_any_threads):
    given = system(channels=12)
    same_by_any_threads(lambda: results(response.fused, given, 13, 0.0, True))


def test_few_numbers_are_not_worth_compiling(monkeypatch):
    monkeypatch.setattr(response, "fused", lambda *_: pytest.fail("compiled"))
    response.respond(*system(), 13)
