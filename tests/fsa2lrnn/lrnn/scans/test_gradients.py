"""Gradients of every scan that the CPU runs against finite differences, and the memory that they take."""

import sys
from itertools import product

import pytest
import torch
from torch.autograd import gradcheck

from fsa2lrnn.lrnn.scans import METHODS, TOKEN_METHODS, scan, scan_tokens

LENGTHS = (0, 1, 2, 3, 7, 8, 40)
SIZES = (1, 2, 3, 5, 8, 16)
HEADS = (1, 3, 8)
BATCHES = (0, 1, 5)
N_ROWS = 3
ENTRIES = 40  # of A, up to which every entry of the Jacobian is differenced
RUNS = [*((scan, method) for method in METHODS), *((scan_tokens, method) for method in TOKEN_METHODS)]
METHOD = pytest.mark.parametrize(("run", "method"), RUNS, ids=lambda part: getattr(part, "__name__", part))


def cover():
    """All pairs of length and size, and of heads and batch; each length and size meets several of both.

    In a Latin square, so that no value of one axis goes with one value of another alone.
    """
    pairs = list(product(HEADS, BATCHES))
    places = product(enumerate(LENGTHS), enumerate(SIZES))
    return [(*pairs[(2 * i + 5 * j) % len(pairs)], length, b) for (i, length), (j, b) in places]


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


def test_the_cover_has_every_value_with_every_other():
    axes = {0: HEADS, 1: BATCHES, 2: LENGTHS, 3: SIZES}
    for first, second in ((0, 1), (2, 3), (0, 2), (0, 3), (1, 2), (1, 3)):
        assert {(shape[first], shape[second]) for shape in cover()} == set(product(axes[first], axes[second]))
    sizes = [inputs(scan, *shape)[1][0].numel() <= ENTRIES for shape in cover()]
    assert min(sizes.count(True), sizes.count(False)) >= 10


@METHOD
@pytest.mark.parametrize("length", LENGTHS)
def test_gradients_of_shapes_that_cover_all(run, method, length):
    for shape in cover():
        if shape[2] == length:
            assert check(run, method, shape), shape


@pytest.mark.slow
@METHOD
@pytest.mark.parametrize("b", SIZES)
def test_gradients_of_all_shapes(run, method, b):
    for shape in product(HEADS, BATCHES, LENGTHS):
        assert check(run, method, (*shape, b)), (*shape, b)


@METHOD
@pytest.mark.parametrize("needed", [n for n in product((True, False), repeat=3) if any(n)])
def test_gradients_of_some_inputs(run, method, needed):
    tokens, parts = inputs(run, 1, 2, 3, 2)
    some = [part.detach().requires_grad_(wanted) for part, wanted in zip(parts, needed, strict=True)]
    assert gradcheck(function(run, method, tokens), some)


@METHOD
def test_gradients_of_inputs_that_are_not_contiguous(run, method):
    tokens, (A, v, x0) = inputs(run, 2, 2, 3, 2)
    strided = [
        A.detach().transpose(0, -3).contiguous().transpose(0, -3).mT,
        v.detach().repeat_interleave(2, -1)[..., ::2],
        x0.detach().transpose(0, 1).contiguous().transpose(0, 1),
    ]
    assert not any(part.is_contiguous() for part in strided)
    tokens = tokens.T.contiguous().T
    assert gradcheck(function(run, method, tokens), [part.requires_grad_() for part in strided])


@METHOD
def test_gradients_of_a_gradient_that_is_not_contiguous(run, method):
    tokens, parts = inputs(run, 2, 2, 3, 2)
    turned = function(run, method, tokens)
    assert gradcheck(lambda *given: turned(*given).transpose(0, 2).flip(1)[..., ::2], parts)


@METHOD
def test_a_wrong_gradient_is_found(run, method):
    """The check can fail: one entry of one gradient is off by a hundredth."""
    tokens, parts = inputs(run, 1, 2, 2, 2)
    right = function(run, method, tokens)

    def wrong(A, v, x0):
        off = torch.zeros_like(v)
        off.view(-1)[0] = 1e-2
        v = v + (v * off - (v * off).detach())  # the value as before, the gradient not
        return right(A, v, x0)

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(wrong, parts)


@pytest.mark.parametrize("run", [scan, scan_tokens])
def test_memory_of_the_fused_scans_grows_as_the_length_does(run, monkeypatch):
    """Bytes asked for, forward and backward: those of x and of the gradients."""
    asked = []

    def counted(shape, dtype):
        asked.append(torch.Size(shape).numel() * dtype.itemsize)
        return torch.empty(shape, dtype=dtype)

    monkeypatch.setattr(sys.modules["fsa2lrnn.lrnn.scans.fused"], "empty", counted)
    heads, b = 2, 4
    found = []
    for length in (1000, 4000):
        del asked[:]
        tokens, parts = inputs(run, heads, 1, length, b)
        function(run, "fused", tokens)(*parts).sum().backward()
        found.append(sum(asked))
    entries = 2 * b + b * b if run is scan else b  # x, dv and dA; x alone, where gradients go into the tables
    assert found == [8 * heads * entries * length for length in (1000, 4000)]
