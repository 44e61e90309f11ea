"""Tables of a switched affine model: what they compute, and what identifies them."""

from dataclasses import fields, replace

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.affine import Readout, SwitchedAffine


def system(dtype=torch.float64, norm=True):
    """Two letters, two heads of size 3, four outputs, at random."""
    torch.manual_seed(0)
    shapes = [(5, 6), (5,), (4, 5), (4,)] + ([(6,), (6,)] if norm else [])
    readout = Readout(*(torch.randn(shape).to(dtype) for shape in shapes))
    A, v, x0 = (torch.randn(shape).to(dtype) for shape in [(2, 2, 3, 3), (2, 2, 3), (2, 3)])
    return SwitchedAffine.of(A, v, x0, readout)


def test_a_step_is_what_a_run_is_made_of():
    tables = system()
    x = tables.x0[None]
    for k in range(4):
        x = tables.step(x).flatten(0, 1)  # words in alphabetical order
        tokens = torch.tensor([[int(bit) for bit in f"{i:0{k + 1}b}"] for i in range(2 ** (k + 1))])
        torch.testing.assert_close(x, tables.run(tokens)[:, -1])
    by_hand = tables.x0
    for a in (1, 0):
        by_hand = torch.stack([tables.A[a, h] @ by_hand[h] + tables.v[a, h] for h in range(2)])
    torch.testing.assert_close(tables.run(torch.tensor([[1, 0]]))[0, -1], by_hand)


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_any_changed_number_changes_the_digest(norm, dtype):
    tables = system(dtype, norm)
    digest = tables.sha256
    assert digest == system(dtype, norm).sha256
    own = [(tables, name) for name in ("A", "v", "x0")]
    read = [
        (tables.readout, field.name) for field in fields(Readout) if getattr(tables.readout, field.name) is not None
    ]
    for holder, name in own + read:
        numbers = getattr(holder, name).view(-1)
        for i in range(len(numbers)):
            before = numbers[i].clone()
            numbers[i] = torch.nextafter(before, before + 1)
            assert tables.sha256 != digest, f"{name}, number {i}"
            numbers[i] = before
    assert tables.sha256 == digest


def test_the_digest_tells_dtypes_and_shapes_apart_but_not_the_two_zeros():
    tables = system()
    assert tables.to(torch.float32).sha256 != tables.sha256  # all its numbers are float32's
    assert (
        replace(tables, x0=torch.zeros(2, 3).double()).sha256 == replace(tables, x0=-torch.zeros(2, 3).double()).sha256
    )
    swapped = replace(tables, A=tables.A.transpose(-1, -2))
    assert swapped.sha256 != tables.sha256
    assert swapped.sha256 == replace(swapped, A=swapped.A.contiguous()).sha256


def test_a_dtype_is_kept_by_all_numbers():
    halved = system().to(torch.bfloat16)
    assert halved.dtype == halved.readout.norm_bias.dtype == torch.bfloat16
    assert halved.logits(halved.run(torch.tensor([[0, 1]]))).dtype == torch.bfloat16
    assert system(norm=False).to(torch.float32).readout.norm_weight is None


def test_the_readout_is_the_models():
    torch.manual_seed(1)
    readout = system().readout
    x = torch.randn(7, 6).double()
    y = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    y = y * readout.norm_weight + readout.norm_bias
    wanted = (y @ readout.W1.T + readout.b1).clamp(min=0) @ readout.W2.T + readout.b2
    torch.testing.assert_close(readout(x), wanted)


def test_a_linear_readout_is_linear():
    torch.manual_seed(2)
    W, b, x = (torch.randint(-50, 50, shape).double() for shape in [(3, 4), (3,), (20, 4)])
    assert torch.equal(Readout.linear(W, b)(x), x @ W.T + b)
    W, b, x = torch.randn(3, 4), torch.randn(3), torch.randn(500, 4)
    torch.testing.assert_close(Readout.linear(W, b)(x), x @ W.T + b, rtol=1e-5, atol=1e-6)


def test_shapes_that_do_not_fit_are_named():
    good = system()
    parts = {"A": good.A, "v": good.v, "x0": good.x0, "readout": good.readout}
    wrong = [
        ({"A": good.A[:, :1]}, r"A has shape \(2, 1, 3, 3\), but 2 letters and x0 \(2, 3\) ask for \(2, 2, 3, 3\)"),
        ({"v": good.v[:1]}, r"v has shape \(1, 2, 3\), but"),
        ({"x0": good.x0[None]}, r"x0 has shape \(1, 2, 3\), but a state is \(H, b\)"),
        ({"x0": good.x0.float()}, "several dtypes"),
        ({"readout": Readout.linear(torch.eye(2).double(), torch.zeros(2).double())}, "takes 2 numbers, a state has 6"),
        ({"outputs": (0, 1)}, "the read-out gives 4 logits for 2 outputs"),
    ]
    for change, message in wrong:
        with pytest.raises(UnsupportedFormat, match=message):
            SwitchedAffine.of(**{**parts, **change})
    read = good.readout
    for change, message in [
        ({"b1": read.b1[:2]}, r"b1 has shape \(2,\), W1 \(5, 6\) asks for \(5,\)"),
        ({"W2": read.W2.T}, "W2 has shape"),
        ({"norm_bias": None}, "give norm_weight and norm_bias, or neither"),
        ({"W1": read.b1}, r"W1 and b2 have shapes \(5,\) and \(4,\)"),
    ]:
        with pytest.raises(UnsupportedFormat, match=message):
            replace(read, **change)
