"""Sums of responses to letters: the compiled ones against their definition, forward and backward."""

import pytest
import torch
from torch.autograd import gradcheck

from fsa2lrnn.extra.baselines.kernels import letters
from fsa2lrnn.extra.baselines.kernels.toeplitz import matrices


def drawn(batch, length, rows, width, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(rows, (batch, length), generator=generator)
    responses, dy = (
        torch.randn(shape, generator=generator, dtype=dtype) for shape in ((rows, length, width), (*index.shape, width))
    )
    return index, responses.requires_grad_(), dy


def results(respond, index, responses, dy):
    y = respond(index, responses)
    return [y, *torch.autograd.grad(y, responses, dy)]


@pytest.mark.parametrize("batch", [0, 1, 5])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 9, 21])
def test_compiled_agrees_with_the_reference(length, batch):
    given = drawn(batch, length, 3, 4)
    for one, other in zip(results(letters.fused, *given), results(letters.reference, *given), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("width", "dtype"), [(3, torch.float64), (16, torch.float32), (64, torch.float32)])
def test_it_agrees_for_other_widths_and_types(width, dtype):
    given = drawn(3, 19, 5, width, dtype)
    for one, other in zip(results(letters.fused, *given), results(letters.reference, *given), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-4 if dtype == torch.float32 else 1e-12)


def test_it_is_a_convolution_where_responses_are_one_times_the_inputs():
    index, _, _ = drawn(4, 11, 3, 4)
    u, K = torch.randn(3, 4, dtype=torch.float64), torch.randn(11, 4, dtype=torch.float64)
    wanted = torch.einsum("bjh,hjt->bth", u[index], matrices(K.T))
    torch.testing.assert_close(letters.reference(index, u.unsqueeze(1) * K), wanted)


def test_empty_words_have_no_outputs():
    index, responses, _ = drawn(2, 0, 3, 4)
    assert letters.fused(index, responses).shape == letters.reference(index, responses).shape == (2, 0, 4)


def test_gradcheck_and_arrays_that_are_not_contiguous():
    index, responses, _ = drawn(3, 7, 2, 8)
    responses, index = responses.detach()[..., ::2].requires_grad_(), index.T.contiguous().T
    assert gradcheck(lambda given: letters.fused(index, given), (responses,))
    torch.testing.assert_close(letters.fused(index, responses), letters.reference(index, responses))


def test_threads_change_no_bit(same_by_any_threads):
    given = drawn(60, 40, 5, 16)
    same_by_any_threads(lambda: results(letters.fused, *given))


def test_few_inputs_in_short_words_are_worth_it():
    index, inputs = torch.zeros(128, 40, dtype=torch.int64), torch.zeros(5, 64)
    assert letters.is_worth_it(index, inputs)
    assert not letters.is_worth_it(index, torch.zeros(100, 64))
    assert not letters.is_worth_it(index[:, :0], inputs)
    assert not letters.is_worth_it(torch.zeros(128, 500, dtype=torch.int64), inputs)
    assert not letters.is_worth_it(index[:1], inputs)
    assert not letters.is_worth_it(index, inputs.bfloat16())


def test_little_work_is_not_worth_compiling(monkeypatch):
    monkeypatch.setattr(letters, "fused", lambda *_: pytest.fail("compiled"))
    index, responses, _ = drawn(2, 9, 3, 4)
    letters.respond(index, responses)
