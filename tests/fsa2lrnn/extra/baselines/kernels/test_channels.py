"""Systems of single channels: every way of running them against the loop, forward and backward."""

import pytest
import torch

from fsa2lrnn.extra.baselines.kernels import channels
from fsa2lrnn.extra.baselines.kernels.channels import METHODS, System, outputs_alone
from fsa2lrnn.extra.baselines.kernels.transition import Transition

H, N = 4, 3
LENGTHS = [0, 1, 2, 3, 39, 40, 41, 100]


def system(mixes):
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(H, N, dtype=torch.complex128, generator=generator) for _ in range(5)]
    parts[0] /= 1.02 * parts[0].abs()
    parts[1] *= 0.05
    parts[2] *= 0.05
    D = torch.randn(H, dtype=torch.float64, generator=generator).requires_grad_()
    a, q, r, B, C = (x.requires_grad_() for x in parts)
    return System(Transition(a, q, r) if mixes else Transition(a), B, C, D)


def inputs(batch, length, starts_at_zero, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    u = torch.randn(batch, length, H, dtype=torch.float64, generator=generator).to(dtype)
    if starts_at_zero:
        return u.requires_grad_(), torch.zeros(1, dtype=dtype).expand(batch, H, 2 * N)
    return u.requires_grad_(), torch.randn(batch, H, 2 * N, dtype=torch.float64, generator=generator).to(dtype)


def results(run, own, u, state):
    """Outputs, last state, and the gradients of a sum in which each number counts otherwise."""
    y, last = run(own, u, state)
    generator = torch.Generator().manual_seed(2)
    weights = [torch.randn(x.shape, dtype=torch.float64, generator=generator) for x in (y, last)]
    total = (y * weights[0]).sum() + (last * weights[1]).sum()
    leaves = [x for x in (*own.transition, own.B, own.C, own.D, u) if x is not None]
    return [y, last, *torch.autograd.grad(total, leaves, materialize_grads=True)]


@pytest.fixture
def short_pieces(monkeypatch):
    monkeypatch.setattr(channels, "WHOLE", 40)
    monkeypatch.setattr(channels, "PIECE", 16)


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("starts_at_zero", [True, False])
@pytest.mark.parametrize("mixes", [True, False])
@pytest.mark.parametrize("length", LENGTHS)
def test_every_method_agrees_with_the_loop(length, mixes, starts_at_zero):
    own, given = system(mixes), inputs(2, length, starts_at_zero)
    wanted = results(METHODS["sequential"], own, *given)
    for method in ("chunked", "fft"):
        for one, other in zip(results(METHODS[method], own, *given), wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(outputs_alone(own, *given), wanted[0], rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("batch", [0, 1])
def test_small_batches_and_single_precision(batch, method):
    own, (u, state) = system(True), inputs(batch, 50, False, torch.float32)
    y, last = METHODS[method](own, u, state)
    wanted, of_state = METHODS["sequential"](own, u.double(), state.double())
    assert y.dtype == last.dtype == torch.float32
    torch.testing.assert_close(y.double(), wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(last.double(), of_state, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_word_in_pieces_is_the_word(method):
    own, (u, state) = system(True), inputs(2, 33, False)
    whole, after = METHODS[method](own, u, state)
    first, between = METHODS[method](own, u[:, :10], state)
    second, last = METHODS[method](own, u[:, 10:], between)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(last, after)


def test_states_that_die_out_leave_no_denormal_numbers():
    own = System(
        Transition(torch.full((1, 1), 0.1 + 0j)), *(torch.ones(1, 1) + 0j for _ in "BC"), torch.zeros(1).double()
    )
    K = own.respond(60, torch.float32).K
    assert (K[K != 0].abs() > 1e-31).all()
    assert (K == 0).any()


def test_outputs_alone_makes_no_last_state(monkeypatch):
    monkeypatch.setattr(channels, "power", lambda *_: pytest.fail("made a state"))
    outputs_alone(system(True), *inputs(2, 40, True))
