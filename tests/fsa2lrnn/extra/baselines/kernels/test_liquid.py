"""The liquid recurrence: the compiled one against the loop, forward and backward."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.kernels.channels import METHODS as PLAIN
from fsa2lrnn.extra.baselines.kernels.channels import System
from fsa2lrnn.extra.baselines.kernels.liquid import METHODS, liquid
from fsa2lrnn.extra.baselines.kernels.transition import Transition


def drawn(batch, length, mixes=True, dtype=torch.float64, channels=4, n=3):
    generator = torch.Generator().manual_seed(0)
    sizes = (0.5, 0.2, 0.2, 0.2, 1)
    a, q, r, B, C = (
        (s * torch.randn(channels, n, dtype=torch.complex128, generator=generator)).requires_grad_() for s in sizes
    )
    D = torch.randn(channels, dtype=torch.float64, generator=generator).requires_grad_()
    u = torch.randn(batch, length, channels, generator=generator).to(dtype).requires_grad_()
    state = torch.randn(batch, channels, 2 * n, generator=generator).to(dtype).requires_grad_()
    return System(Transition(a, q, r) if mixes else Transition(a), B, C, D), u, state


def results(system, u, state, method):
    y, last = liquid(system, u, state, method)
    generator = torch.Generator().manual_seed(1)
    total = sum((x * torch.randn(x.shape, generator=generator, dtype=torch.float64)).sum() for x in (y, last))
    leaves = [x for x in (*system.transition, *system[1:], u, state) if x is not None]
    return [y, last, *torch.autograd.grad(total, leaves, materialize_grads=True, allow_unused=True)]


@pytest.mark.parametrize("mixes", [True, False])
@pytest.mark.parametrize("batch", [0, 1, 5])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 21])
def test_compiled_agrees_with_the_loop(length, batch, mixes):
    given = drawn(batch, length, mixes)
    for one, other in zip(results(*given, "fused"), results(*given, "sequential"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-11)


def test_compiled_agrees_in_single_precision():
    given = drawn(2, 20, dtype=torch.float32)
    for one, other in zip(results(*given, "fused"), results(*given, "sequential"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_small_inputs_make_it_linear():
    system, u, state = drawn(2, 9)
    small = 1e-6 * u.detach()
    start = torch.zeros_like(state)
    y, _ = liquid(system, small, start, "sequential")
    torch.testing.assert_close(y, PLAIN["sequential"](system, small, start)[0], rtol=1e-4, atol=0)
    y, _ = liquid(system, u, start, "sequential")
    assert not torch.allclose(y, PLAIN["sequential"](system, u, start)[0], rtol=1e-2)


def test_threads_change_no_bit(same_by_any_threads):
    given = drawn(7, 21)
    same_by_any_threads(lambda: results(*given, "fused"))


def test_what_the_compiled_one_does_not_take_is_refused():
    system, u, state = drawn(1, 2)
    wording = "u float32 on cpu, state float64 on cpu: the compiled liquid recurrence takes float32 or float64"
    with pytest.raises(UnsupportedFormat, match=wording):
        liquid(system, u.float(), state, "fused")
    with pytest.raises(
        UnsupportedFormat, match="scan method 'fft' is not known: choose one of auto, sequential, fused"
    ):
        liquid(system, u, state, "fft")
    assert list(METHODS) == ["sequential", "fused"]
