"""Scans of tables by token against scans of the tables written out, forward and backward."""

import pytest
import torch

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.lrnn.scans import TOKEN_METHODS, choose_token_method, scan, scan_tokens

LENGTHS = [0, 1, 2, 3, 7, 8, 40]
SIZES = [1, 2, 3, 5, 8, 16, 18]
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-4}  # B·T gradients are added up in one place


def tables(batch, length, heads, b, dtype=torch.float64, n_rows=3):
    """Tokens and norm-preserving tables, and an initial state for each word."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(n_rows, (batch, length), generator=generator)
    A = torch.linalg.qr(torch.randn(n_rows, heads, b, b, generator=generator, dtype=torch.float64)).Q
    v, x0 = (torch.randn(n, heads, b, generator=generator, dtype=torch.float64) for n in (n_rows, batch))
    return tokens, *(t.to(dtype).requires_grad_() for t in (A, v, x0))


def results(tokens, inputs, run):
    copies = [t.detach().clone().requires_grad_() for t in inputs]
    x = run(tokens, *copies)
    weight = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).reshape(x.shape)
    if x.requires_grad:
        (x * weight).sum().backward()
    return [x, *(torch.zeros_like(t) if t.grad is None else t.grad for t in copies)]


def written_out(tokens, A, v, x0):
    return scan(A[tokens], v[tokens], x0, "sequential")


def by(method):
    return lambda *inputs: scan_tokens(*inputs, method=method)


@pytest.mark.parametrize("b", SIZES)
@pytest.mark.parametrize("length", LENGTHS)
def test_agrees_with_the_tables_written_out_forward_and_backward(length, b):
    for batch in (0, 1, 5):
        for heads in (1, 3, 8):
            tokens, *inputs = tables(batch, length, heads, b)
            wanted = results(tokens, inputs, written_out)
            for method in TOKEN_METHODS:
                for one, other in zip(results(tokens, inputs, by(method)), wanted, strict=True):
                    torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("method", TOKEN_METHODS)
def test_agrees_in_single_precision_with_one_initial_state_for_all(method, dtype):
    for heads in (1, 5):
        tokens, A, v, x0 = tables(40, 25, heads, 8, dtype)
        inputs = A, v, x0.detach()[0]
        found, wanted = (results(tokens, inputs, run) for run in (by(method), written_out))
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * 10)


@pytest.mark.parametrize("method", TOKEN_METHODS)
def test_strided_and_expanded_inputs(method):
    tokens, A, v, x0 = tables(4, 6, 3, 4)
    strided = [A.detach().contiguous().mT, v.detach()[:, :1].expand(3, 3, 4), x0.detach().flip(0)[::2].repeat(2, 1, 1)]
    tokens = tokens.T.contiguous().T
    assert not tokens.is_contiguous()
    found, wanted = (results(tokens, strided, run) for run in (by(method), written_out))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("method", TOKEN_METHODS)
def test_what_is_no_number_stays_in_the_words_that_read_it(method):
    tokens = torch.tensor([[0, 1, 1], [0, 2, 1], [0, 0, 0]])
    _, A, v, x0 = (t.detach() for t in tables(3, 3, 2, 4))
    v[2, 1] = float("nan")
    wrong = scan_tokens(tokens, A, v, x0, method).isnan()
    assert wrong[1, 1:, 1].all()
    assert wrong.sum() == 2 * 4


@pytest.mark.parametrize(
    ("batch", "n_rows", "dtype", "device", "method"),
    [
        (128, 5, torch.float32, "cpu", "fused"),
        (128, 5000, torch.float64, "cpu", "fused"),
        (1, 5, torch.float32, "cpu", "letters"),
        (128, 5, torch.bfloat16, "cpu", "letters"),
        (128, 33, torch.bfloat16, "cpu", "sequential"),
        (128, 32, torch.float32, "meta", "letters"),
        (128, 33, torch.float32, "meta", "sequential"),
    ],
)
def test_what_auto_stands_for(batch, n_rows, dtype, device, method):
    tokens = torch.empty(batch, 15, dtype=torch.int64, device=device)
    assert choose_token_method(tokens, torch.empty(n_rows, 8, 8, dtype=dtype, device=device)) == method


def test_bad_arguments_are_named():
    tokens, A, v, x0 = (t.detach() for t in tables(2, 4, 1, 3))
    fit = r"tokens \(2, 4\), A_table \(3, 1, 3, 2\), v_table \(3, 1, 3\), x0 \(2, 1, 3\) should be"
    for arguments, message in (
        ((tokens, A[..., :2], v, x0), fit),
        ((tokens, A, v, x0[:1].expand(3, 1, 3)), "shapes do not fit"),
        ((tokens[0], A, v, x0), "shapes do not fit"),
        (
            (tokens, A, v, x0, "pscan"),
            "scan method 'pscan' is not known: choose one of auto, sequential, letters, fused",
        ),
        ((tokens.int(), A, v, x0), r"tokens of type torch.int32: give int64"),
        *(((tokens + 1, A, v, x0, m), r"token 3 is no row of the tables: they run 0\.\.2") for m in TOKEN_METHODS),
        *(((tokens - 1, A, v, x0, m), "token -1 is no row") for m in TOKEN_METHODS),
    ):
        with pytest.raises((ValueError, UnsupportedFormat, InvalidWord), match=message):
            scan_tokens(*arguments)
