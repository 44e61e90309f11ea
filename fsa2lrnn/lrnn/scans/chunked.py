"""The scan in two levels: about √T chunks of √T letters, all chunks at once. Plain torch, on any device.

First every chunk composes its letters into one affine map, then a state is carried from chunk to chunk, and at last
every chunk runs from the state that it starts with: 3√T dependent steps, and memory and work that grow as T does, where
pscan's grow as T·log T. The composition costs b times what a state's step does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from fsa2lrnn.lrnn.scans.reference import sequential


def chunked(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """x_k = A_k x_{k-1} + v_k in about 3√T steps: A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b) -> (B,T,H,b).

    About T·H·b²·(b + 3) multiplications. As in pscan, an infinite product times a zero state is NaN.
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
    """The map x ↦ P x + q of each chunk: (B,m,c,H,b,b) and (B,m,c,H,b) -> (B,m,H,b,b) and (B,m,H,b)."""
    maps = torch.cat([A, v.unsqueeze(-1)], dim=-1).unbind(2)  # (B, m, H, b, b + 1): [A_k | v_k]
    composed = maps[0]
    for A_k, v_k in zip(A.unbind(2)[1:], v.unbind(2)[1:], strict=True):
        moved = A_k @ composed
        composed = torch.cat([moved[..., :-1], moved[..., -1:] + v_k.unsqueeze(-1)], dim=-1)
    return composed[..., :-1], composed[..., -1]
