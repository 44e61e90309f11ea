"""What follows the recurrence in the layers of state-space models: a GELU, and gates that mix the channels.

- "none": the recurrence's outputs as they are.
- "gelu": g = GELU(y).
- "glu": (W₁g + b₁) ⊙ σ(W₂g + b₂); S4's output, and the "full GLU" of S5 and LRU.
- "half_glu1": g ⊙ σ(Wg + b), "half_glu2": y ⊙ σ(Wg + b); S5's.

`reference` is made of torch's operations; `fused` leaves the matrix products to torch, and has all that is between them
compiled for the CPU, derivatives and all, each array read once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.functional import gelu, glu, linear

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.compiled import takes
from fsa2lrnn.lrnn.compiled.memory import empty
from fsa2lrnn.lrnn.compiled.threads import cuts, share, thread_count
from fsa2lrnn.lrnn.compiled.vectors import instruction, kernel
from fsa2lrnn.lrnn.compiled.widths import by_width
from fsa2lrnn.lrnn.once import once
from fsa2lrnn.lrnn.ssm.activations import Activations

KINDS = ("none", "gelu", "glu", "half_glu1", "half_glu2")
_WORTH_COMPILING = 1 << 13  # numbers; below, no number of calls makes up for seconds of compilation
_COST = 16  # multiplications that an entry is worth, about
_SHARES = 4  # of the rows, whose gradients of b are added up independently of the number of threads


def check_mixing(kind: str) -> None:
    """Raises `UnsupportedFormat` for an unknown kind."""
    if kind not in KINDS:
        raise UnsupportedFormat(f"mixing {kind!r} is not known: choose one of {', '.join(KINDS)}")


class Mixing(nn.Module):
    """The function `kind`, position by position: (…, H) -> (…, H).

    `approximate` is GELU's: "none" for the error function, "tanh" for the approximation that JAX takes. There is no
    dropout: whatever judges a model would judge another one than runs.
    """

    def __init__(self, width: int, kind: str, approximate: str = "none") -> None:
        super().__init__()
        check_mixing(kind)
        self.kind, self.approximate = kind, approximate
        if "glu" in kind:
            self.linear = nn.Linear(width, 2 * width if kind == "glu" else width)

    def forward(self, y: Tensor, method: str = "auto") -> Tensor:
        """(…, H) -> (…, H); "sequential" is the definition, whatever else can be had."""
        weights = (self.linear.weight, self.linear.bias) if "glu" in self.kind else ()
        is_worth_it = method != "sequential" and y.numel() >= _WORTH_COMPILING and takes(y, *weights)
        return (fused if is_worth_it else reference)(y, self.kind, self.approximate, *weights)


def reference(y: Tensor, kind: str, approximate: str, *weights: Tensor) -> Tensor:
    """The function `kind` with W and b as `weights` where it has gates: (…, H) -> (…, H)."""
    if kind == "none":
        return y
    g = gelu(y, approximate=approximate)
    if kind == "gelu":
        return g
    z = linear(g, *weights)
    if kind == "glu":
        return glu(z, -1)
    return (g if kind == "half_glu1" else y) * torch.sigmoid(z)


def fused(y: Tensor, kind: str, approximate: str, *weights: Tensor) -> Tensor:
    """`reference` in compiled loops on the CPU; differentiable once."""
    if kind == "none":
        return y
    rows = y.reshape(-1, y.shape[-1])
    out = _Gelu.apply(rows, approximate) if kind == "gelu" else _Gates.apply(rows, *weights, kind, approximate)
    return out.view(y.shape)


class _Gelu(Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, approximate: str) -> Tensor:
        g, slope = _gelu_of(y.contiguous(), approximate)
        ctx.save_for_backward(slope)
        return g

    @staticmethod
    @once
    def backward(ctx: Any, dg: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return dg * slope, None


class _Gates(Function):
    """x ⊙ σ(z), where W g + b is x beside z ("glu"), or z, and x is g or y: (N, H) -> (N, H)."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, W: Tensor, b: Tensor, kind: str, approximate: str) -> Tensor:
        y, (rows, width) = y.contiguous(), y.shape
        g, slope = _gelu_of(y, approximate)
        z = torch.mm(g, W.T, out=empty((rows, len(W)), y.dtype))
        x = {"glu": z, "half_glu1": g, "half_glu2": y}[kind]
        out, slopes = empty((rows, width), y.dtype), empty((rows, 2 * width), y.dtype)
        arguments = (z, x, b.contiguous(), out, slopes, x is z, width)
        share(kernels(width).gate, arguments, cuts(rows, thread_count(_COST * out.numel())))
        ctx.save_for_backward(W, g, slope, slopes)
        ctx.kind = kind
        return out

    @staticmethod
    @once
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        W, g, slope, slopes = ctx.saved_tensors
        rows, width = dout.shape
        parts = cuts(rows, _SHARES)
        found, sums = empty((rows, 2 * width), dout.dtype), dout.new_zeros(len(parts), 2 * width)
        numbered = [(*part, i) for i, part in enumerate(parts)]
        share(kernels(width).backward_gate, (dout.contiguous(), slopes, found, sums, width), numbered)
        dx, dz, db = found[:, :width], found[:, -len(W) :], sums.sum(0)[-len(W) :]
        dW, dy = dz.T @ g, torch.mm(dz, W, out=empty((rows, width), dout.dtype))
        if ctx.kind == "half_glu1":
            dy += dx
        dy *= slope
        if ctx.kind == "half_glu2":
            dy += dx
        return dy, dW, db, None, None


def _gelu_of(y: Tensor, approximate: str) -> tuple[Tensor, Tensor]:
    """GELU(y) and its derivative: (N, H), (N, H)."""
    g, slope = empty(tuple(y.shape), y.dtype), empty(tuple(y.shape), y.dtype)
    arguments = (y, g, slope, approximate == "tanh", y.shape[1])
    share(kernels(y.shape[1]).gelu, arguments, cuts(len(y), thread_count(_COST * y.numel())))
    return g, slope


def _write_gelu(rows: Activations, y: Any, i: Any, g: Any, slope: Any) -> None:
    value, derivative = rows.gelu(rows.load(y, i))
    rows.store(value, g, i)
    rows.store(derivative, slope, i)


def _write_approximate_gelu(rows: Activations, y: Any, i: Any, g: Any, slope: Any) -> None:
    value, derivative = rows.approximate_gelu(rows.load(y, i))
    rows.store(value, g, i)
    rows.store(derivative, slope, i)


def _write_gate(
    rows: Activations, x: Any, j: Any, of_x: Any, z: Any, k: Any, b: Any, of_z: Any, out: Any, i: Any, slopes: Any,
    m: Any, n: Any,
) -> None:  # fmt: skip
    gate = rows.sigmoid(rows.plus(rows.load(z, k), rows.load(b, of_z)))
    value = rows.times(rows.plus(rows.load(x, j), rows.load(b, of_x)), gate)
    rows.store(value, out, i)
    rows.store(gate, slopes, m)
    rows.store(rows.times(value, rows.minus(rows.constant(1.0), gate)), slopes, n)


def _write_back(
    rows: Activations, dout: Any, i: Any, slopes: Any, found: Any, m: Any, n: Any, sums: Any, of_x: Any, of_z: Any
) -> None:
    given = rows.load(dout, i)
    for place, total in ((m, of_x), (n, of_z)):
        gradient = rows.times(given, rows.load(slopes, place))
        rows.store(gradient, found, place)
        rows.store(rows.plus(rows.load(sums, total), gradient), sums, total)


_gelu, _approximate_gelu = (instruction(write, Activations) for write in (_write_gelu, _write_approximate_gelu))
_gate, _back = (instruction(write, Activations) for write in (_write_gate, _write_back))


class Kernels(NamedTuple):
    """Kernels on flat arrays, `size` = H, `part` the rows (n0, n1) to do, backward also the number of the share.

    - gelu(y, g, slope, approximate, size, part): writes g and its derivative (N, H).
    - gate(z, x, bias, out, slopes, is_one, size, part): writes x ⊙ σ(z + bias) (N, H) and its derivatives by x and by
      z, beside each other (N, 2H); if it `is_one`, x and z lie beside each other so too, and both have a bias.
    - backward_gate(dout, slopes, found, sums, size, part): writes the gradients of x and z (N, 2H), adds them up to
      `sums` (shares, 2H).
    """

    gelu: Callable[..., None]
    gate: Callable[..., None]
    backward_gate: Callable[..., None]


@by_width
def kernels(width: int) -> Kernels:
    @kernel(Activations)
    def gelus(y, g, slope, approximate, size, part):  # type: ignore[no-untyped-def]
        for i in range(part[0] * size, part[1] * size, width):
            if approximate:
                _approximate_gelu(width, (y, i, g, slope))
            else:
                _gelu(width, (y, i, g, slope))

    @kernel(Activations)
    def gate(z, x, bias, out, slopes, is_one, size, part):  # type: ignore[no-untyped-def]
        both = np.zeros(2 * size, z.dtype)
        both[-len(bias) :] = bias
        for n in range(part[0], part[1]):
            for h in range(0, size, width):
                i, of_x, of_z = n * size + h, 2 * n * size + h, (2 * n + 1) * size + h
                j, k = (of_x, of_z) if is_one else (i, i)
                _gate(width, (x, j, h, z, k, both, size + h, out, i, slopes, of_x, of_z))

    @kernel(Activations)
    def backward_gate(dout, slopes, found, sums, size, part):  # type: ignore[no-untyped-def]
        at = 2 * part[2] * size
        for n in range(part[0], part[1]):
            for h in range(0, size, width):
                i, of_x, of_z = n * size + h, 2 * n * size + h, (2 * n + 1) * size + h
                _back(width, (dout, i, slopes, found, of_x, of_z, sums, at + h, at + size + h))

    return Kernels(gelus, gate, backward_gate)
