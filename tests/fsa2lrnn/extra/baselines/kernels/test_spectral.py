"""A recurrence between two matrices, compiled as a whole, against products and a scan, forward and backward."""

from functools import partial

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.kernels.spectral import Spectrum, fused, is_whole, reference

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-4}  # of the largest number


def drawn(batch, given, width=8, states=4, dtype=torch.float64):
    """Rates of absolute value 0.97, so that nothing is forgotten at once, and all else normal."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    angle = normal(states)
    rates = 0.97 * torch.cat([angle.cos(), angle.sin()])
    shapes = [(2 * states, width), (width, 2 * states), (width,), (batch, given, width), (batch, 2 * states)]
    return [x.to(dtype).requires_grad_() for x in (rates, *(normal(*shape) for shape in shapes))]


def results(method, given, length):
    *spectrum, u, x0 = given
    compute = fused if method == "fused" else partial(reference, method=method)
    found = compute(Spectrum(*spectrum), u, x0, length)
    generator = torch.Generator().manual_seed(1)
    towards = [torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.dtype) for x in found]
    return [*found, *torch.autograd.grad(found, given, towards, materialize_grads=True, allow_unused=True)]


def check(given, length):
    tolerance = TOLERANCE[given[0].dtype]
    for one, other in zip(*(results(method, given, length) for method in ("fused", "sequential")), strict=True):
        scale = float(other.detach().abs().max()) if other.numel() else 0.0
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance * max(scale, 1.0))


@pytest.mark.parametrize("batch", [0, 1, 5])
@pytest.mark.parametrize("length", [0, 1, 2, 39, 64, 65, 200])
def test_agrees_with_the_reference(length, batch):
    check(drawn(batch, length), length)


@pytest.mark.parametrize(("given", "length"), [(1, 40), (1, 130), (70, 130), (0, 3)])
def test_inputs_may_end_before_the_word(given, length):
    check(drawn(3, given), length)


def test_agrees_in_single_precision():
    check(drawn(6, 100, 12, 8, torch.float32), 100)


def test_slices_are_read_as_what_they_are():
    given = [x.detach() for x in drawn(4, 9, 16, 8)]
    rates, B, C, D, u, x0 = given
    sliced = [rates[::2], B[::2, ::2], C[::2, ::2], D[::2], u[::2, :, ::2], x0[::2, ::2]]
    check([x.requires_grad_() for x in sliced], 9)


def test_outputs_alone_may_have_gradients():
    *spectrum, u, x0 = drawn(2, 5)
    for compute in (fused, reference):
        y, last = compute(Spectrum(*spectrum), u, x0, 5)
        found = [torch.autograd.grad(each.sum(), u, retain_graph=True)[0] for each in (y, last)]
        torch.testing.assert_close(torch.autograd.grad(y.sum() + last.sum(), u)[0], sum(found))


def test_threads_change_no_bit(same_by_any_threads):
    given = drawn(7, 70)
    same_by_any_threads(lambda: results("fused", given, 70))


def test_the_way_is_chosen_by_what_it_costs():
    D, u, x0 = torch.ones(4), torch.zeros(8, 40, 4), torch.zeros(8, 32)
    assert [is_whole(method, 40 * 32, D, u, x0) for method in ("auto", "letters", "fused")] == [True] * 3
    assert [is_whole(method, 40 * 32, D, u, x0) for method in ("sequential", "pscan")] == [False] * 2
    assert [is_whole(method, 2 * 32, D, u, x0) for method in ("auto", "fused")] == [False, True]
    assert not is_whole("auto", 40 * 32, D, u.double(), x0)
    with pytest.raises(UnsupportedFormat, match="u float64 on cpu, x0 float32 on cpu: the compiled spectral layer"):
        is_whole("fused", 40 * 32, D, u.double(), x0)
