"""The scans in compiled loops on the CPU: one pass over A forward and one backward, without autograd between steps.

Words and heads are distributed over torch's threads (`compiled.share`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.compiled import DTYPES, at_once, cuts, empty, job, share, thread_count, typed_once_differentiable
from fsa2lrnn.lrnn.scans.cpu_kernels import kernels

HALVES = (torch.bfloat16, torch.float16)  # computed in float32, and rounded at the end

_ADDED = 4  # heads, or otherwise shares of the batch, whose gradients of tables are summed independently

Part = tuple[int, int, int, int]  # words n0 … n1 − 1, heads h0 … h1 − 1


def fused(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute x_k = A_k x_{k-1} + v_k on the CPU: A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b) -> (B,T,H,b).

    Differentiable once. For bfloat16 and float16 the states are computed in float32 and rounded at the end. Raises
    `UnsupportedFormat` for a device or dtype that the kernels do not support.
    """
    check_fused(A, v, x0)
    if A.dtype in HALVES:
        return fused(A.float(), v.float(), x0.float()).to(A.dtype)
    return _FusedScan.apply(A, v, x0)  # type: ignore[no-any-return]


def fused_tokens(tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute `fused` with A_k, v_k from tables: tokens (B,T), A (N,H,b,b), v (N,H,b), x0 (B,H,b) -> (B,T,H,b)."""
    check_fused(A, v, x0)
    if A.dtype in HALVES:
        return fused_tokens(tokens, A.float(), v.float(), x0.float()).to(A.dtype)
    return _FusedTokenScan.apply(tokens, A, v, x0)  # type: ignore[no-any-return]


def check_fused(A: Tensor, v: Tensor, x0: Tensor) -> None:
    """Raise `UnsupportedFormat` unless all three are in the CPU's memory, in one dtype that the kernels support."""
    parts = {"A": A, "v": v, "x0": x0}
    kinds = {(tensor.device.type, tensor.dtype) for tensor in parts.values()}
    if len(kinds) > 1 or A.device.type != "cpu" or A.dtype not in DTYPES + HALVES:
        names = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in parts.items()}
        given = ", ".join(f"{name} {dtype} on {parts[name].device}" for name, dtype in names.items())
        raise UnsupportedFormat(
            f"{given}: the fused scan takes float32, float64, bfloat16 or float16 on the CPU, the same for all; "
            'convert them, or choose the scan "sequential" or "chunked"'
        )


class _FusedScan(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
        A, v, x0 = A.contiguous(), v.contiguous(), x0.contiguous()
        x = empty(v.shape, v.dtype)
        batch, length, heads, b = v.shape
        share(kernels(b).forward, (A, v, x0, x, (length, heads, b)), _parts(batch, heads, A.numel()))
        ctx.save_for_backward(A, x0, x)
        return x

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dx: Tensor) -> tuple[Tensor | None, ...]:
        A, x0, x = ctx.saved_tensors
        with_A, with_v, with_x0 = ctx.needs_input_grad
        dA = empty(A.shape, A.dtype) if with_A else A
        dv, dx0 = empty(x.shape, x.dtype), torch.zeros_like(x0)
        batch, length, heads, b = x.shape
        arguments = (A, x0, x, dx.contiguous(), dA, dv, dx0, with_A, (length, heads, b))
        share(kernels(b).backward, arguments, _parts(batch, heads, A.numel()))
        return dA if with_A else None, dv if with_v else None, dx0 if with_x0 else None


class _FusedTokenScan(Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
        tokens, A, v, x0 = tokens.contiguous(), A.contiguous(), v.contiguous(), x0.contiguous()
        (batch, length), (heads, b) = tokens.shape, v.shape[1:]
        x = empty((batch, length, heads, b), v.dtype)
        arguments = (tokens, A.mT.contiguous(), v, x0, x, (length, heads, b))
        share(kernels(b).forward_tokens, arguments, _parts(batch, heads, x.numel() * b))
        ctx.save_for_backward(tokens, A, x0, x)
        return x

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dx: Tensor) -> tuple[Tensor | None, ...]:
        tokens, A, x0, x = ctx.saved_tensors
        _, with_A, with_v, with_x0 = ctx.needs_input_grad
        batch, length, heads, b = x.shape
        # The order of each sum depends on the shapes alone, not on the number of threads.
        n_shares = 1 if heads >= _ADDED else max(1, min(batch, _ADDED))
        dA, dv = torch.zeros(n_shares, *A.shape, dtype=A.dtype), torch.zeros(n_shares, *A.shape[:-1], dtype=A.dtype)
        dx0, dx = torch.zeros_like(x0), dx.contiguous()
        run, n_threads = kernels(b).backward_tokens, thread_count(x.numel() * b)
        groups = cuts(heads, n_threads if n_shares == 1 else 1)
        jobs = [
            job(run, (tokens, A, x0, x, dx, dA[i], dv[i], dx0, (length, heads, b)), (*words, *group))
            for i, words in enumerate(cuts(batch, n_shares))
            for group in groups
        ]
        at_once(jobs, n_threads)
        return None, dA.sum(0) if with_A else None, dv.sum(0) if with_v else None, dx0 if with_x0 else None


def _parts(batch: int, heads: int, multiplications: int) -> list[Part]:
    n_parts = thread_count(multiplications)
    if batch >= n_parts:
        return [(*words, 0, heads) for words in cuts(batch, n_parts)]
    return [(0, batch, *group) for group in cuts(heads, n_parts)]
