"""Every scan, of tables by token too, against the sequential reference, forward and backward; refused arguments."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.nn.scans import METHODS, TOKEN_METHODS, choose_method, choose_token_method, scan, scan_tokens

FAST = [method for method in METHODS if method != "sequential"]
LENGTHS = [0, 1, 2, 3, 7, 8, 40]
SIZES = [1, 2, 3, 5, 8, 16]
SHAPES = [(batch, heads) for batch in (0, 1, 5) for heads in (1, 3, 8)]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def norm_preserving(batch, length, heads, b, dtype=torch.float64, seed=0):
    """Orthogonal blocks: Gaussian ones contract, and would hide every numerical difference."""
    generator = torch.Generator().manual_seed(seed)
    A = torch.linalg.qr(torch.randn(batch, length, heads, b, b, generator=generator, dtype=torch.float64)).Q
    v = torch.randn(batch, length, heads, b, generator=generator, dtype=torch.float64)
    x0 = torch.randn(heads, b, generator=generator, dtype=torch.float64)
    return [t.to(dtype).requires_grad_() for t in (A, v, x0)]


def noisy_permutations(batch, length, heads, b, dtype=torch.float64):
    """Permutations and a little noise, as training leaves them: nearly norm-preserving, and not symmetric."""
    generator = torch.Generator().manual_seed(1)
    places = torch.rand(batch, length, heads, b, generator=generator).argsort(-1)
    A = torch.eye(b)[places] + 0.01 * torch.randn(*places.shape, b, generator=generator)
    v = 0.1 * torch.randn(*places.shape, generator=generator)
    return [t.to(dtype).requires_grad_() for t in (A, v, torch.randn(batch, heads, b, generator=generator))]


def results(inputs, run):
    """The states by a method or a function, and the gradients of a sum in which each counts otherwise."""
    copies = [t.detach().clone().requires_grad_() for t in inputs]
    x = scan(*copies, method=run) if isinstance(run, str) else run(*copies)
    weight = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).reshape(x.shape)
    if x.requires_grad:
        (x * weight).sum().backward()
    return [x, *(torch.zeros_like(t) if t.grad is None else t.grad for t in copies)]


def assert_same(found, wanted, tolerance):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.long_cases("norm_preserving-0-3", "norm_preserving-1-3")
@pytest.mark.parametrize("b", SIZES)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("make", [norm_preserving, noisy_permutations])
def test_agrees_with_the_reference_forward_and_backward(make, length, b):
    for batch, heads in SHAPES:
        inputs = make(batch, length, heads, b)
        wanted = results(inputs, "sequential")
        for method in FAST:
            assert_same(results(inputs, method), wanted, 10 * TOLERANCE[torch.float64])


@pytest.mark.long_cases("fused-17-dtype0", "fused-33-dtype0")
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("b", [3, 8, 17, 33])
@pytest.mark.parametrize("method", FAST)
def test_agrees_in_single_precision_and_for_large_blocks(method, b, dtype):
    for length in (4, 5, 13, 31):
        inputs = norm_preserving(3, length, 2, b, dtype)
        assert_same(results(inputs, method), results(inputs, "sequential"), 10 * TOLERANCE[dtype])


@pytest.mark.parametrize("method", METHODS)
def test_non_contiguous_inputs(method):
    A, v, x0 = (t.detach() for t in norm_preserving(2, 6, 3, 4))
    strided = [A.contiguous().mT, v.transpose(0, 1).contiguous().transpose(0, 1), x0.T.contiguous().T]
    solid = [t.contiguous() for t in strided]
    assert not any(t.is_contiguous() for t in strided)
    assert_same(results(strided, method), results(solid, method), 1e-12)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("b", [1, 3, 8, 17])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_no_number_spreads_and_stays_in_its_word_and_head(method, b, value):
    A, v, x0 = (t.detach() for t in norm_preserving(2, 9, 2, b))
    v[1, 4, 1, b - 1] = value
    x = scan(A, v, x0, method)
    wrong = ~x.isfinite()
    assert wrong[1, 4:, 1].any(-1).all()
    assert wrong[1, 5:, 1].all()
    wrong[1, 4:, 1] = False
    assert not wrong[0].any()
    assert not wrong[:, :, 0].any()
    assert not wrong[:, :4].any()


@pytest.mark.long
@given(st.data(), st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]))
def test_one_hot_transitions_are_bit_exact_in_every_dtype_and_schedule(data, dtype):
    n, length = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 40))
    maps = data.draw(
        st.lists(st.lists(st.integers(0, n - 1), min_size=n, max_size=n), min_size=length, max_size=length)
    )
    A = torch.zeros(1, length, 1, n, n, dtype=dtype)
    q, states = 0, []
    for k, row in enumerate(maps):
        A[0, k, 0, row, range(n)] = 1
        q = row[q]
        states.append(q)
    x0 = torch.eye(n, dtype=dtype)[:1]
    expected = torch.eye(n, dtype=dtype)[states].reshape(1, length, 1, n)
    for method in METHODS:
        assert torch.equal(scan(A, torch.zeros(1, length, 1, n, dtype=dtype), x0, method), expected)


@pytest.mark.parametrize(("shape", "dtype", "device", "method"), [
    ((128, 40, 8, 8), torch.float32, "cpu", "fused"), ((128, 40, 8, 8), torch.float64, "cpu", "fused"),
    ((1, 128, 1, 8), torch.float32, "cpu", "fused"), ((1, 127, 1, 8), torch.float32, "cpu", "sequential"),
    ((0, 40, 8, 8), torch.float32, "cpu", "sequential"), ((128, 40, 8, 8), torch.bfloat16, "cpu", "sequential"),
    ((128, 63, 8, 8), torch.float32, "meta", "sequential"), ((128, 64, 8, 8), torch.float32, "meta", "chunked"),
    ((128, 64, 8, 8), torch.bfloat16, "meta", "chunked"),
])  # fmt: skip
def test_what_auto_stands_for(shape, dtype, device, method):
    assert choose_method(torch.empty(shape, dtype=dtype, device=device)) == method


def test_auto_does_what_it_chooses_and_bad_arguments_are_named():
    inputs = [t.detach() for t in norm_preserving(3, 60, 2, 8)]
    assert choose_method(inputs[1]) == "fused"
    assert torch.equal(scan(*inputs), scan(*inputs, method="fused"))
    assert not torch.equal(scan(*inputs), scan(*inputs, method="sequential"))
    A, v, x0 = torch.zeros(1, 2, 1, 3, 3), torch.zeros(1, 2, 1, 3), torch.zeros(1, 3)
    with pytest.raises(UnsupportedFormat, match="scan method 'magic' is not known: choose one of auto, sequential,"):
        scan(A, v, x0, "magic")
    with pytest.raises(ValueError, match=r"A \(1, 2, 1, 3, 3\), v \(1, 2, 1, 3\), x0 \(2, 3\) should be"):
        scan(A, v, torch.zeros(2, 3))
    with pytest.raises(ValueError, match="shapes do not fit"):
        scan(A[..., :2], v, x0)


SIZES_TOKENS = [1, 2, 3, 5, 8, 16, 18]


def tables(batch, length, heads, b, dtype=torch.float64, n_rows=3):
    """Tokens and norm-preserving tables, and an initial state for each word."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(n_rows, (batch, length), generator=generator)
    A = torch.linalg.qr(torch.randn(n_rows, heads, b, b, generator=generator, dtype=torch.float64)).Q
    v, x0 = (torch.randn(n, heads, b, generator=generator, dtype=torch.float64) for n in (n_rows, batch))
    return tokens, *(t.to(dtype).requires_grad_() for t in (A, v, x0))


@pytest.mark.long_cases("0-16", "0-18", "0-3", "1-18")
@pytest.mark.parametrize("b", SIZES_TOKENS)
@pytest.mark.parametrize("length", LENGTHS)
def test_agrees_with_the_tables_written_out_forward_and_backward(length, b):
    for batch in (0, 1, 5):
        for heads in (1, 3, 8):
            tokens, *inputs = tables(batch, length, heads, b)
            wanted = results(inputs, lambda A, v, x0: scan(A[tokens], v[tokens], x0, "sequential"))  # noqa: B023
            for method in TOKEN_METHODS:
                found = results(inputs, lambda *tables: scan_tokens(tokens, *tables, method=method))  # noqa: B023
                assert_same(found, wanted, 1e-11)


@pytest.mark.parametrize(("batch", "n_rows", "dtype", "device", "method"), [
    (128, 5, torch.float32, "cpu", "fused"), (128, 5000, torch.float64, "cpu", "fused"),
    (1, 5, torch.float32, "cpu", "letters"), (128, 5, torch.bfloat16, "cpu", "letters"),
    (128, 33, torch.bfloat16, "cpu", "sequential"), (128, 32, torch.float32, "meta", "letters"),
    (128, 33, torch.float32, "meta", "sequential"),
])  # fmt: skip
def test_what_auto_stands_for_by_token(batch, n_rows, dtype, device, method):
    tokens = torch.empty(batch, 15, dtype=torch.int64, device=device)
    assert choose_token_method(tokens, torch.empty(n_rows, 8, 8, dtype=dtype, device=device)) == method


def test_bad_arguments_are_named():
    tokens, A, v, x0 = (t.detach() for t in tables(2, 4, 1, 3))
    fit = r"tokens \(2, 4\), A_table \(3, 1, 3, 2\), v_table \(3, 1, 3\), x0 \(2, 1, 3\) should be"
    for arguments, message in (
        ((tokens, A[..., :2], v, x0), fit),
        ((tokens, A, v, x0[:1].expand(3, 1, 3)), "shapes do not fit"),
        ((tokens[0], A, v, x0), "shapes do not fit"),
        ((tokens, A, v, x0, "pscan"), "scan method 'pscan' is not known: choose one of auto, sequential, letters,"),
        ((tokens.int(), A, v, x0), r"tokens of type torch.int32: give int64"),
        *(((tokens + 1, A, v, x0, m), r"token 3 is not a row of the tables: they run 0\.\.2") for m in TOKEN_METHODS),
        *(((tokens - 1, A, v, x0, m), "token -1 is not a row") for m in TOKEN_METHODS),
    ):
        with pytest.raises((ValueError, UnsupportedFormat, InvalidWord), match=message):
            scan_tokens(*arguments)
