"""The scans in plain torch, on any device: the sequential scan, which defines the result, and three other orders.

The parallel scan is the paper's (Fan, Chi & Rudnicky, §3.4 and Appendix A.2).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad


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
    columns = A.permute(1, 3, 0, 2).reshape(heads, b, n_rows * b)  # (H, j, (n, i))
    x, states = x0.transpose(0, 1), []  # (H, B, b)
    inputs = v.transpose(0, 1)[:, tokens.T]  # (H, T, B, b)
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
    size = max(1, math.isqrt(length))
    n_chunks = -(-length // size)
    missing = n_chunks * size - length
    A = pad(A, (0, 0, 0, 0, 0, 0, 0, missing)).reshape(batch, n_chunks, size, heads, b, b)
    v = pad(v, (0, 0, 0, 0, 0, missing)).reshape(batch, n_chunks, size, heads, b)
    starts = [x0]  # of each chunk
    if n_chunks > 1:
        product, offset = _composed(A[:, :-1], v[:, :-1])
        starts += sequential(product, offset, x0).unbind(1)
    x = torch.stack(starts, dim=1)  # (B, n_chunks, H, b)
    states = sequential(A.flatten(0, 1), v.flatten(0, 1), x.flatten(0, 1)) if n_chunks else v
    return states.reshape(batch, n_chunks * size, heads, b)[:, :length]


def _composed(A: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return the map x ↦ P x + q of each chunk: (B,m,c,H,b,b) and (B,m,c,H,b) -> (B,m,H,b,b) and (B,m,H,b)."""
    maps = torch.cat([A, v.unsqueeze(-1)], dim=-1).unbind(2)  # (B, m, H, b, b + 1): [A_k | v_k]
    composed = maps[0]
    for A_k, v_k in zip(A.unbind(2)[1:], v.unbind(2)[1:], strict=True):
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
        carried = coefficients @ left[:, :, -1:].unsqueeze(-1)
        x = torch.cat([left, right + carried.squeeze(-1)], dim=2)
    return x.reshape(batch, places, *v.shape[2:])[:, 1 : length + 1]


def spt(products: Tensor) -> tuple[Tensor, Tensor]:
    """Return the products for this round of `pscan` and those for the next round, by the paper's schedule.

    `products` has shape (B, 2m−1, c, H, b, b): group g holds the c products A_{s+j} ⋯ A_{s+1} of its segment. Even
    groups are used now, shape (B, m, c, …); each odd group, extended by the next even one, makes a group of 2c.
    """
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
