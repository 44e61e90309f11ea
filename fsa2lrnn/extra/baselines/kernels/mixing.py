"""What follows the recurrence in the layers of state-space models: a GELU, and gates that mix the channels.

- "none": the recurrence's outputs as they are.
- "gelu": g = GELU(y).
- "glu": (W₁g + b₁) ⊙ σ(W₂g + b₂); S4's output, and the "full GLU" of S5 and LRU.
- "half_glu1": g ⊙ σ(Wg + b), "half_glu2": y ⊙ σ(Wg + b); S5's.

`reference` is made of torch's operations. `fused` is compiled for the CPU (`mixing_kernels`): a few rows at a time
go all the way, so that nothing but inputs and outputs goes through memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.functional import gelu, glu, linear

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.kernels.mixing_kernels import BESIDE, INPUT, OWN, kernels, scratch
from fsa2lrnn.lrnn.autograd import typed_once_differentiable
from fsa2lrnn.lrnn.compiled import takes
from fsa2lrnn.lrnn.compiled.memory import empty
from fsa2lrnn.lrnn.compiled.threads import cuts, share, thread_count

KINDS = ("none", "gelu", "glu", "half_glu1", "half_glu2")
_WORTH_COMPILING = 1 << 13  # numbers; below, no number of calls makes up for seconds of compilation
_COST = 16  # multiplications that an entry without gates is worth, about
_OF = {"glu": BESIDE, "half_glu1": OWN, "half_glu2": INPUT}  # what is gated
_SHARES = 4  # of the rows, whose gradients of W and b are added up independently of the number of threads


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
    rows, is_tanh = y.reshape(-1, y.shape[-1]), approximate == "tanh"
    out = _Gelu.apply(rows, is_tanh) if kind == "gelu" else _Gates.apply(rows, *weights, _OF[kind], is_tanh)
    return out.view(y.shape)


class _Gelu(Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, is_tanh: bool) -> Tensor:
        y, (rows, width) = y.contiguous(), y.shape
        g, slope = empty((rows, width), y.dtype), empty((rows, width), y.dtype)
        parts = cuts(rows, thread_count(_COST * y.numel()))
        share(kernels(width).gelu, (y, g, slope, is_tanh, width), parts)
        ctx.save_for_backward(slope)
        return g

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dg: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return dg * slope, None


class _Gates(Function):
    """x ⊙ σ(z), where W g + b is x beside z, or z alone: (N, H) -> (N, H). On the way back g is made again, W g is
    not."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, W: Tensor, b: Tensor, gated: int, is_tanh: bool) -> Tensor:
        y, (rows, width) = y.contiguous(), y.shape
        out, keeps = empty((rows, width), y.dtype), any(ctx.needs_input_grad)
        kept = empty((rows if keeps else 0, len(W)), y.dtype)
        parts = _numbered(cuts(rows, thread_count(rows * W.numel())))
        room, biases = y.new_empty(len(parts), scratch(width)), _biases(b, width)
        given = (y, W.T.contiguous(), biases, out, kept, keeps, room, gated, is_tanh, width)
        share(kernels(width).forward, given, parts)
        ctx.save_for_backward(y, W, b, kept)
        ctx.biases, ctx.options = biases, (gated, is_tanh, width)
        return out

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        y, W, b, kept = ctx.saved_tensors
        rows, width = y.shape
        parts = _numbered(cuts(rows, _SHARES))
        dy, room = empty((rows, width), y.dtype), y.new_empty(len(parts), scratch(width))
        dW, db = (y.new_zeros(len(parts), *shape) for shape in (W.shape, (2 * width,)))
        given = (y, W.contiguous(), kept, ctx.biases, dout.contiguous())
        share(kernels(width).backward, (*given, dy, dW, db, room, *ctx.options), parts)
        return dy, dW.sum(0), db.sum(0)[-len(b) :], None, None


def _numbered(parts: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return [(*part, i) for i, part in enumerate(parts)]


def _biases(b: Tensor, width: int) -> Tensor:
    """That of x, or zero, beside that of z: (2H,)."""
    return torch.cat([b.new_zeros(2 * width - len(b)), b])
