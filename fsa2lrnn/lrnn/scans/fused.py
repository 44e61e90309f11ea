"""The scans in compiled loops on the CPU, forward and backward: one pass over A each way, no step of autograd between.

Words and heads are shared out among torch's threads (`torch.set_num_threads`): the kernels let go of Python's lock, so
plain threads do, which sleep while there is nothing to do and mind neither a fork nor another busy process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.scans.kernels import kernels
from fsa2lrnn.lrnn.scans.memory import empty

DTYPES = (torch.float32, torch.float64)  # computed in as they are
HALVES = (torch.bfloat16, torch.float16)  # computed in float32, and rounded at the end

_WORTH_A_THREAD = 1 << 17  # multiplications; a tenth of a millisecond or less
_ADDED = 4  # heads, or else shares of the batch, whose gradients of tables are added up independently

Part = tuple[int, int, int, int]  # words n0 … n1 − 1, heads h0 … h1 − 1


def fused(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """x_k = A_k x_{k-1} + v_k on the CPU: A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b) -> (B,T,H,b).

    Differentiable once. bfloat16 and float16 are computed with states in float32.

    Raises:
        UnsupportedFormat: for a device or dtype that the kernels don't know.
    """
    check_fused(A, v, x0)
    if A.dtype in HALVES:
        return fused(A.float(), v.float(), x0.float()).to(A.dtype)
    return _Scan.apply(A, v, x0)  # type: ignore[no-any-return]


def fused_tokens(tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """The same with A_k, v_k looked up by token: (B,T), tables (N,H,b,b) and (N,H,b), x0 (B,H,b) -> (B,T,H,b)."""
    check_fused(A, v, x0)
    if A.dtype in HALVES:
        return fused_tokens(tokens, A.float(), v.float(), x0.float()).to(A.dtype)
    return _TokenScan.apply(tokens, A, v, x0)  # type: ignore[no-any-return]


def check_fused(A: Tensor, v: Tensor, x0: Tensor) -> None:
    """Raises `UnsupportedFormat` unless all three are in one dtype that the kernels know, in the CPU's memory."""
    kinds = {(tensor.device.type, tensor.dtype) for tensor in (A, v, x0)}
    if len(kinds) > 1 or A.device.type != "cpu" or A.dtype not in DTYPES + HALVES:
        given = ", ".join(
            f"{name} {str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"
            for name, tensor in (("A", A), ("v", v), ("x0", x0))
        )
        raise UnsupportedFormat(
            f"{given}: the fused scan takes float32, float64, bfloat16 or float16 on the CPU, the same for all; "
            'convert them, or choose method="sequential" or "chunked"'
        )


class _Scan(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
        A, v, x0 = A.contiguous(), v.contiguous(), x0.contiguous()
        x = empty(v.shape, v.dtype)
        batch, length, heads, b = v.shape
        sizes = (length, heads, b)
        _share(kernels(b).forward, (A, v, x0, x), sizes, _parts(batch, heads, A.numel()))
        ctx.save_for_backward(A, x0, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator hides the parameters' names
        ctx: Any, *gradients: Any
    ) -> tuple[Tensor | None, ...]:
        (dx,), (A, x0, x) = gradients, ctx.saved_tensors
        with_A, with_v, with_x0 = ctx.needs_input_grad
        dA = empty(A.shape, A.dtype) if with_A else A
        dv, dx0 = empty(x.shape, x.dtype), torch.zeros_like(x0)
        batch, length, heads, b = x.shape
        arrays = (A, x0, x, dx.contiguous(), dA, dv, dx0, with_A)
        _share(kernels(b).backward, arrays, (length, heads, b), _parts(batch, heads, A.numel()))
        return dA if with_A else None, dv if with_v else None, dx0 if with_x0 else None


class _TokenScan(Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
        tokens, A, v, x0 = tokens.contiguous(), A.contiguous(), v.contiguous(), x0.contiguous()
        (batch, length), (heads, b) = tokens.shape, v.shape[1:]
        x = empty((batch, length, heads, b), v.dtype)
        parts = _parts(batch, heads, x.numel() * b)
        _share(kernels(b).forward_tokens, (tokens, A.mT.contiguous(), v, x0, x), (length, heads, b), parts)
        ctx.save_for_backward(tokens, A, x0, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator hides the parameters' names
        ctx: Any, *gradients: Any
    ) -> tuple[Tensor | None, ...]:
        (dx,), (tokens, A, x0, x) = gradients, ctx.saved_tensors
        _, with_A, with_v, with_x0 = ctx.needs_input_grad
        batch, length, heads, b = x.shape
        # What is added up in one place depends on the shapes alone, so that the sums don't depend on the threads.
        n_shares = 1 if heads >= _ADDED else max(1, min(batch, _ADDED))
        dA, dv = torch.zeros(n_shares, *A.shape, dtype=A.dtype), torch.zeros(n_shares, *A.shape[:-1], dtype=A.dtype)
        dx0, dx = torch.zeros_like(x0), dx.contiguous()
        groups = _cuts(heads, _threads(x.numel() * b) if n_shares == 1 else 1)
        jobs = [
            ((tokens, A, x0, x, dx, dA[i], dv[i], dx0), (*words, *group))
            for i, words in enumerate(_cuts(batch, n_shares))
            for group in groups
        ]
        run = kernels(b).backward_tokens
        _at_once([_job(run, arrays, (length, heads, b), part) for arrays, part in jobs], _threads(x.numel() * b))
        return None, dA.sum(0) if with_A else None, dv.sum(0) if with_v else None, dx0 if with_x0 else None


def _threads(multiplications: int) -> int:
    return max(1, min(torch.get_num_threads(), multiplications // _WORTH_A_THREAD))


def _parts(batch: int, heads: int, multiplications: int) -> list[Part]:
    """Words, or heads where there are few words, in as many parts as threads are worth while."""
    n_parts = _threads(multiplications)
    if batch >= n_parts:
        return [(*words, 0, heads) for words in _cuts(batch, n_parts)]
    return [(0, batch, *group) for group in _cuts(heads, n_parts)]


def _cuts(total: int, n_parts: int) -> list[tuple[int, int]]:
    """0 … total − 1 in at most n_parts stretches of nearly the same length.

    >>> _cuts(10, 3), _cuts(1, 2), _cuts(0, 2)
    ([(0, 3), (3, 6), (6, 10)], [(0, 1)], [(0, 0)])
    """
    n_parts = max(1, min(n_parts, total))
    ends = [total * i // n_parts for i in range(n_parts + 1)]
    return list(pairwise(ends))


def _share(kernel: Callable[..., None], arrays: tuple[Any, ...], sizes: tuple[int, ...], parts: list[Part]) -> None:
    _at_once([_job(kernel, arrays, sizes, part) for part in parts], len(parts))


def _job(
    kernel: Callable[..., None], arrays: tuple[Any, ...], sizes: tuple[int, ...], part: Part
) -> Callable[[], None]:
    flat = [each.detach().numpy().reshape(-1) if isinstance(each, Tensor) else each for each in arrays]
    return lambda: kernel(*flat, sizes, part)


def _at_once(jobs: list[Callable[[], None]], n_threads: int) -> None:
    if n_threads == 1 or len(jobs) == 1:
        for job in jobs:
            job()
        return
    for _ in _pool(n_threads).map(lambda job: job(), jobs):
        pass


@lru_cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="scan")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads
