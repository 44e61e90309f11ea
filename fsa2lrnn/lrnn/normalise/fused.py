"""The column rules in compiled loops on the CPU, forward and backward: one pass over A each way.

Blocks are shared out among torch's threads as the words of a fused scan are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.compiled import DTYPES, Kernel, cuts, empty, share, thread_count, typed_once_differentiable
from fsa2lrnn.lrnn.compiled.vectors import WIDEST
from fsa2lrnn.lrnn.normalise.column_kernels import kernels
from fsa2lrnn.lrnn.normalise.reference import bounded

_PASSES = 8  # multiplications that the work on a number is worth, about


def takes(A: Tensor) -> bool:
    """Whether the kernels know the device, the dtype and the size of the blocks (…, b, b)."""
    return A.device.type == "cpu" and A.dtype in DTYPES and 1 <= A.shape[-1] <= WIDEST


def fused(A: Tensor, rule: str, p: float) -> Tensor:
    """`normalise` on the CPU: (…, b, b) -> (…, b, b). Differentiable once.

    Raises:
        UnsupportedFormat: for a device, dtype or size of blocks that the kernels don't know.
    """
    if not takes(A):
        raise UnsupportedFormat(
            f"blocks of size {A.shape[-1]}, {str(A.dtype).removeprefix('torch.')} on {A.device}: the fused column "
            f'rules take float32 or float64 on the CPU, size 1 to {WIDEST}; convert them, or choose method="reference"'
        )
    return A if rule == "none" else _Normalise.apply(A, rule, bounded(p))  # type: ignore[no-any-return]


class _Normalise(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, rule: str, p: float) -> Tensor:
        A = A.contiguous()
        y, norms = empty(A.shape, A.dtype), empty(A.shape[:-1], A.dtype)
        ctx.kernels = kernels(rule, A.shape[-1])
        ctx.powers = _powers(p, A.shape[-1], A.dtype)
        _share(ctx.kernels.forward, A, ctx.powers, y, norms)
        ctx.save_for_backward(y, norms)
        return y

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        y, norms = ctx.saved_tensors
        dA = empty(y.shape, y.dtype)
        _share(ctx.kernels.backward, y, norms, dy.contiguous(), ctx.powers, dA)
        return dA, None, None


def _powers(p: float, b: int, dtype: torch.dtype) -> Tensor:
    exact = torch.tensor([p - 1, 1 / p - 1], dtype=torch.float64)
    short = exact.to(torch.bfloat16 if dtype == torch.float32 else torch.float32)
    return torch.stack([short, exact - short], dim=1).to(dtype).flatten().repeat_interleave(b)


def _share(kernel: Kernel, blocks: Tensor, *others: Tensor) -> None:
    parts = cuts(blocks.shape[:-2].numel(), thread_count(blocks.numel() * _PASSES))
    share(kernel, (blocks, *others), parts)
