"""The scans in plain torch, on any device: the sequential scan, which defines the result, and three other orders.

The parallel scan is the paper's (Fan, Chi & Rudnicky, §3.4 and Appendix A.2).

`fused` is compiled for the CPU: one pass over A forward and one backward, without autograd between steps.
The gradient runs the recurrence backwards: with g_k = ∂L/∂x_k + A_{k+1}ᵀ g_{k+1} it is dA_k = g_k x_{k-1}ᵀ, dv_k = g_k
and dx_0 = g_0. Words and heads are distributed over torch's threads. A sum's order is fixed by the shapes, so that
results depend neither on the number of threads nor on the run.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.compiled import (
    DTYPES,
    Context,
    Kernel,
    Part,
    at_once,
    cuts,
    kernel,
    share,
    thread_count,
    typed_once_differentiable,
)


def sequential(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Return x_k = A_k x_{k-1} + v_k, step by step: A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b) -> (B,T,H,b).

    The loop runs over `unbind` views: slicing `A[:, k]` makes autograd allocate a gradient of A's full size per step.
    """
    x, states = x0, []
    for A_k, v_k in zip(A.unbind(1), v.unbind(1), strict=True):
        x = (A_k @ x.unsqueeze(-1)).squeeze(-1) + v_k
        states.append(x)
    return torch.stack(states, dim=1) if states else v.clone()


def sequential_tokens(tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute x_k = A[token_k] x_{k-1} + v[token_k] in order: (B,T), (N,H,b,b), (N,H,b), x0 (B,H,b) -> (B,T,H,b)."""
    x, states = x0, []
    for token in tokens.unbind(1):
        x = (A[token] @ x.unsqueeze(-1)).squeeze(-1) + v[token]
        states.append(x)
    return torch.stack(states, dim=1) if states else x0.new_zeros(len(x0), 0, *x0.shape[1:])


def letters(tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute `sequential_tokens` by applying every row of the table to every state and selecting the result.

    This takes N times the multiplications, but as one matrix product per head, so it is faster for few rows, mainly in
    the backward pass: the gradient of the table is a matrix product too, instead of a sum of B·T blocks.
    """
    (batch, length), (n_rows, heads, b) = tokens.shape, v.shape
    # Column (n, i) of this matrix gives entry i of the state after letter n, so one product applies all letters.
    columns = A.permute(1, 3, 0, 2).reshape(heads, b, n_rows * b)  # (H, j, (n, i))
    x, states = x0.transpose(0, 1), []  # (H, B, b)
    inputs = v.transpose(0, 1)[:, tokens.T]  # (H, T, B, b)
    # `gather` picks, on the axis of letters, the entry of the letter that each word reads: (T, H, B, 1, b).
    places = tokens.T.reshape(length, 1, batch, 1, 1).expand(length, heads, batch, 1, b)
    for place, v_k in zip(places.unbind(0), inputs.unbind(1), strict=True):
        every = (x @ columns).reshape(heads, batch, n_rows, b)
        x = every.gather(2, place).squeeze(2) + v_k
        states.append(x)
    if not states:
        return x0.new_zeros(batch, 0, heads, b)
    return torch.stack(states).permute(2, 0, 1, 3).contiguous()


def chunked(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute `sequential` in about 3√T dependent steps: A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b) -> (B,T,H,b).

    The letters of each of about √T chunks are composed into one affine map, a state is carried from chunk to chunk, and
    every chunk runs from its start: about B·T·H·b²·(b + 2) multiplications. As in `pscan`, an infinite product times a
    zero state is NaN.
    """
    batch, length, heads, b = v.shape
    # √T steps inside a chunk, √T chunks to carry a state through, and √T steps again balance each other.
    size = max(1, math.isqrt(length))
    n_chunks = -(-length // size)
    missing = n_chunks * size - length
    # Zero steps complete the last chunk. It is never composed, and the states of its missing steps are cut off.
    A = pad(A, (0, 0, 0, 0, 0, 0, 0, missing)).reshape(batch, n_chunks, size, heads, b, b)
    v = pad(v, (0, 0, 0, 0, 0, missing)).reshape(batch, n_chunks, size, heads, b)
    starts = [x0]  # of each chunk
    if n_chunks > 1:
        # The maps of all chunks but the last lead from each chunk's start to the next one's.
        product, offset = _composed(A[:, :-1], v[:, :-1])
        starts += sequential(product, offset, x0).unbind(1)
    x = torch.stack(starts, dim=1)  # (B, n_chunks, H, b)
    # Chunks count as words of a batch here: all of them run at once, each from its own start.
    states = sequential(A.flatten(0, 1), v.flatten(0, 1), x.flatten(0, 1)) if n_chunks else v
    return states.reshape(batch, n_chunks * size, heads, b)[:, :length]


def _composed(A: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return the map x ↦ P x + q of each chunk: (B,m,c,H,b,b) and (B,m,c,H,b) -> (B,m,H,b,b) and (B,m,H,b)."""
    maps = torch.cat([A, v.unsqueeze(-1)], dim=-1).unbind(2)  # (B, m, H, b, b + 1): [A_k | v_k]
    composed = maps[0]
    for A_k, v_k in zip(A.unbind(2)[1:], v.unbind(2)[1:], strict=True):
        # [P | q] becomes A_k [P | q] + [0 | v_k]: the offset is carried as one more column.
        moved = A_k @ composed
        composed = torch.cat([moved[..., :-1], moved[..., -1:] + v_k.unsqueeze(-1)], dim=-1)
    return composed[..., :-1], composed[..., -1]


def pscan(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute `sequential` in ⌈log₂(T+1)⌉ rounds: A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b) -> (B,T,H,b).

    x_0, v_1, … v_T occupy L = 2^k places, k = ⌈log₂(T+1)⌉. Round r forms groups of 2^(r+1) places; the last state of
    each left half, times the products of transitions in between (`spt`), is added to each place of its right half.
    About B·(T/2)·log₂T·H·b³ multiplications. An infinite product times a zero state is NaN here, where the sequential
    scan stays 0: the order of multiplication differs.
    """
    batch, length = v.shape[:2]
    rounds = length.bit_length()  # ⌈log₂(T+1)⌉
    places = 2**rounds
    x = pad(torch.cat([x0.unsqueeze(1), v], dim=1), (0, 0, 0, 0, 0, places - length - 1))  # (B, L, H, b)
    products = pad(A, (0, 0, 0, 0, 0, 0, 0, places - 1 - length)).unsqueeze(2)  # (B, L-1, 1, H, b, b)
    for r in range(rounds):
        coefficients, products = spt(products)  # (B, groups, 2^r, H, b, b)
        left, right = x.reshape(batch, places >> (r + 1), 2, 2**r, *v.shape[2:]).unbind(2)  # (B, groups, 2^r, H, b)
        # T10: the places of a right half lack what the left half of their segment collected, which its last place
        # holds.
        carried = coefficients @ left[:, :, -1:].unsqueeze(-1)
        x = torch.cat([left, right + carried.squeeze(-1)], dim=2)
    return x.reshape(batch, places, *v.shape[2:])[:, 1 : length + 1]


def spt(products: Tensor) -> tuple[Tensor, Tensor]:
    """Return the products for this round of `pscan` and those for the next round, by the paper's schedule.

    `products` has shape (B, 2m−1, c, H, b, b): group g holds the c products A_{s+j} ⋯ A_{s+1} of its segment. Even
    groups are used now, shape (B, m, c, …); each odd group, extended by the next even one, makes a group of 2c.
    """
    # Even groups lead into the right halves of this round's segments. Odd ones lead across a boundary between
    # segments and are extended for a later round.
    used, kept = products[:, ::2], products[:, 1::2]
    return used, torch.cat([kept, used[:, 1:] @ kept[:, :, -1:]], dim=2)


def schedule(length: int) -> list[list[list[str]]]:
    """Return the names of the products that each round of `pscan` uses, as in the paper's Appendix A.2.1.

    `length` is T = 2^k − 1, the lengths that need no padding; raises `ValueError` for others.

    >>> for used in schedule(7):
    ...     print(used)
    [['A1'], ['A3'], ['A5'], ['A7']]
    [['A2', 'A3A2'], ['A6', 'A7A6']]
    [['A4', 'A5A4', 'A6A5A4', 'A7A6A5A4']]
    """
    if length < 1 or length & (length + 1):
        # The largest length of the form 2^k − 1 that does not exceed the given one.
        below = 2 ** max((length + 1).bit_length() - 1, 1) - 1 if length > 0 else 1
        raise ValueError(
            f"length {length} is not 2^k - 1: take {below} or {2 * below + 1}; pscan pads to such a length"
        )
    groups, rounds = [[f"A{k}"] for k in range(1, length + 1)], []
    while groups:
        used, kept = groups[::2], groups[1::2]
        rounds.append(used)
        groups = [now + [name + now[-1] for name in later] for now, later in zip(kept, used[1:], strict=True)]
    return rounds


HALVES = (torch.bfloat16, torch.float16)  # computed in float32, and rounded at the end

_ADDED = 4  # heads, or otherwise shares of the batch, whose gradients of tables are summed independently


class BlockScanKernels(NamedTuple):
    """The kernels for blocks of one size, on contiguous arrays, for words n0 … n1 − 1 and heads h0 … h1 − 1.

    States x (B,T+1,H,b) start with x_0 and gradients g (B,T+1,H,b) with that of x_0; step k leads from place k − 1 to
    place k. Table entries are (N,H,b,b) and (N,H,b), tokens (B,T).

    - forward(A, x, *part): adds A_k x_{k-1} to each x_k, which holds v_k: A (B,T,H,b,b).
    - backward(A, x, g, dA, *part): adds A_kᵀ g_k to each g_{k-1}, which holds ∂L/∂x_{k-1}, and writes dA.
    - forward_tokens(tokens, AT, v, x, *part): writes x_1 … x_T; the blocks of AT are *transposed*.
    - backward_tokens(tokens, A, x, g, dA, dv, *part): as `backward`, and adds to dA and dv.
    """

    forward: Kernel
    backward: Kernel
    forward_tokens: Kernel
    backward_tokens: Kernel


@lru_cache
def kernels(b: int) -> BlockScanKernels:
    """Return the kernels for blocks of size b, a constant to the compiler; `lanes` is b, unknown to it."""

    # Unsigned offsets, since numba tests signed ones for counting from the end. `one` is a copy of a vector that the
    # compiler knows not to change while others are written.
    @kernel("contract", "reassoc")
    def forward(A, x, n0, n1, h0, h1):
        (T, H, lanes), flat, one = A.shape[1:4], A.reshape(-1), np.empty(b, A.dtype)
        for n in range(n0, n1):
            for t in range(T):
                for h in range(h0, h1):
                    block = np.uint64(((n * T + t) * H + h) * b * b)
                    for j in range(b):
                        one[j] = x[n, t, h, j]
                    for i in range(lanes):
                        total = x[n, t + 1, h, i]
                        for j in range(b):
                            total += flat[block + np.uint64(i * b + j)] * one[j]
                        x[n, t + 1, h, i] = total

    @kernel("contract", "reassoc")
    def backward(A, x, g, dA, n0, n1, h0, h1):
        (T, H, lanes), flat, of_flat, one = A.shape[1:4], A.reshape(-1), dA.reshape(-1), np.empty(b, A.dtype)
        for n in range(n0, n1):
            for t in range(T - 1, -1, -1):
                for h in range(h0, h1):
                    block = np.uint64(((n * T + t) * H + h) * b * b)
                    for i in range(b):
                        one[i] = g[n, t + 1, h, i]
                    for j in range(lanes):
                        total, factor = g[n, t, h, j], x[n, t, h, j]
                        for i in range(b):
                            total += one[i] * flat[block + np.uint64(i * b + j)]
                        g[n, t, h, j] = total
                        for i in range(b):
                            of_flat[block + np.uint64(i * b + j)] = one[i] * factor

    @kernel("contract", "reassoc")
    def forward_tokens(tokens, AT, v, x, n0, n1, h0, h1):
        (H, lanes), flat, one = AT.shape[1:3], AT.reshape(-1), np.empty(b, v.dtype)
        for n in range(n0, n1):
            for t in range(tokens.shape[1]):
                token = tokens[n, t]
                for h in range(h0, h1):
                    block = np.uint64((token * H + h) * b * b)
                    for j in range(b):
                        one[j] = x[n, t, h, j]
                    for i in range(lanes):
                        total = v[token, h, i]
                        for j in range(b):
                            total += flat[block + np.uint64(j * b + i)] * one[j]
                        x[n, t + 1, h, i] = total

    @kernel("contract", "reassoc")
    def backward_tokens(tokens, A, x, g, dA, dv, n0, n1, h0, h1):
        (H, lanes), flat, of_flat, one = A.shape[1:3], A.reshape(-1), dA.reshape(-1), np.empty(b, A.dtype)
        for n in range(n0, n1):
            for t in range(tokens.shape[1] - 1, -1, -1):
                token = tokens[n, t]
                for h in range(h0, h1):
                    block = np.uint64((token * H + h) * b * b)
                    for i in range(b):
                        one[i] = g[n, t + 1, h, i]
                    for j in range(lanes):
                        dv[token, h, j] += one[j]
                        total, factor = g[n, t, h, j], x[n, t, h, j]
                        for i in range(b):
                            total += one[i] * flat[block + np.uint64(i * b + j)]
                        g[n, t, h, j] = total
                        for i in range(b):
                            of_flat[block + np.uint64(i * b + j)] += one[i] * factor

    return BlockScanKernels(forward, backward, forward_tokens, backward_tokens)


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
    def forward(ctx: Context, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
        A, x = A.contiguous(), torch.cat([x0.unsqueeze(1), v], dim=1)
        share(kernels(A.shape[-1]).forward, (A, x), _parts(x))
        ctx.save_for_backward(A, x)
        return x[:, 1:]

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Context, dx: Tensor) -> tuple[Tensor | None, ...]:
        A, x = ctx.saved_tensors
        g, dA = _before(dx), torch.empty_like(A)
        share(kernels(A.shape[-1]).backward, (A, x, g, dA), _parts(x))
        return dA, g[:, 1:], g[:, 0]


class _FusedTokenScan(Function):
    @staticmethod
    def forward(ctx: Context, tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
        tokens, A, v = tokens.contiguous(), A.contiguous(), v.contiguous()
        x = x0.new_empty(len(x0), tokens.shape[1] + 1, *x0.shape[1:])
        x[:, 0] = x0
        share(kernels(A.shape[-1]).forward_tokens, (tokens, A.mT.contiguous(), v, x), _parts(x))
        ctx.save_for_backward(tokens, A, x)
        return x[:, 1:]

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Context, dx: Tensor) -> tuple[Tensor | None, ...]:
        tokens, A, x = ctx.saved_tensors
        batch, _, heads, b = x.shape
        # The order of each sum depends on the shapes alone, not on the number of threads.
        n_shares = 1 if heads >= _ADDED else max(1, min(batch, _ADDED))
        # Each share of the words adds to a table of its own; `dA.sum(0)` adds the shares in a fixed order.
        g, dA, dv = _before(dx), A.new_zeros(n_shares, *A.shape), A.new_zeros(n_shares, *A.shape[:-1])
        n_threads = thread_count(x.numel() * b)
        # Heads are divided among threads only where the words are not: two threads never add to one entry.
        groups = cuts(heads, n_threads if n_shares == 1 else 1)
        shares = zip(dA.numpy(), dv.numpy(), cuts(batch, n_shares), strict=False)
        run = partial(kernels(b).backward_tokens, *(tensor.numpy() for tensor in (tokens, A, x, g)))
        at_once([partial(run, *sums, *words, *group) for *sums, words in shares for group in groups], n_threads)
        return None, dA.sum(0), dv.sum(0), g[:, 0]


def _before(dx: Tensor) -> Tensor:
    """Return the gradients of x_1 … x_T after a zero for that of x_0: (B,T,H,b) -> (B,T+1,H,b), contiguous."""
    return pad(dx, (0, 0, 0, 0, 1, 0)).contiguous()


def _parts(x: Tensor) -> list[Part]:
    """Return the words and heads of each thread, for states (B,T+1,H,b)."""
    batch, _, heads, b = x.shape
    n_parts = thread_count(x.numel() * b)
    # Words are the first choice, since those of one thread are contiguous in memory.
    if batch >= n_parts:
        return [(*words, 0, heads) for words in cuts(batch, n_parts)]
    return [(0, batch, *group) for group in cuts(heads, n_parts)]
