"""Gradients of every scan that the CPU runs against finite differences, and the memory that they take."""

import subprocess
import sys
from itertools import product
from pathlib import Path

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
    return [
        (*pairs[(2 * i + 5 * j) % len(pairs)], length, b)
        for i, length in enumerate(LENGTHS)
        for j, b in enumerate(SIZES)
    ]


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
    shapes = cover()
    assert {shape[2:] for shape in shapes} == set(product(LENGTHS, SIZES))
    assert {shape[:2] for shape in shapes} == set(product(HEADS, BATCHES))
    for first, second, values in ((0, 2, (HEADS, LENGTHS)), (0, 3, (HEADS, SIZES)), (1, 2, (BATCHES, LENGTHS))):
        assert {(shape[first], shape[second]) for shape in shapes} == set(product(*values))
    assert {(shape[1], shape[3]) for shape in shapes} == set(product(BATCHES, SIZES))
    for whole in (True, False):
        sizes = [inputs(scan, *shape)[1][0].numel() <= ENTRIES for shape in shapes]
        assert sizes.count(whole) >= 10


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


STATUS = Path("/proc/self/status")  # its peak is the process's own; that of getrusage takes over the parent's
PEAKS = """
import re, sys, torch
from pathlib import Path
from fsa2lrnn.lrnn import scan

def peak(length):
    A = torch.eye(4).repeat(1, length, 2, 1, 1).requires_grad_()
    v, x0 = torch.zeros(1, length, 2, 4, requires_grad=True), torch.zeros(2, 4)
    scan(A, v, x0, "fused").sum().backward()
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])

base = peak(1000)
print(*(peak(int(length)) - base for length in sys.argv[1:]))
"""


@pytest.mark.skipif(not STATUS.exists() or "VmHWM" not in STATUS.read_text(), reason="the system keeps no peak")
def test_memory_of_a_process_that_scans_grows_as_the_length_does():
    """A letter takes 128 bytes for A and dA each, and 32 for v, x, dx and dv each; loading has a peak of its own."""
    single = [part.detach().float().requires_grad_() for part in inputs(scan, 2, 1, 1, 4)[1]]
    scan(*single, "fused").sum().backward()  # leaves the code on disk: a compilation has a larger peak
    lengths = 300_000, 600_000, 900_000
    process = subprocess.run(
        [sys.executable, "-c", PEAKS, *map(str, lengths)], capture_output=True, text=True, check=True
    )
    peaks = [int(peak) for peak in process.stdout.split()]
    slopes = [(peaks[i + 1] - peaks[i]) / (lengths[i + 1] - lengths[i]) for i in (0, 1)]
    assert all(256 < slope < 2 * 384 for slope in slopes), slopes
