"""Baselines: the authors' two scans, as their code runs them, written anew from the paper's appendix A.2.

They serve only as references for measurements. They differ from `fsa2lrnn.nn.scans`: Sequential
takes its steps by slices A[:, k], whose gradients are each as large as A; PScan consists of einsums.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def authors_sequential(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute x_k = A_k x_{k-1} + v_k by slices: A (B,T,H,b,b), v (B,T,H,b), x0 (H,b) -> (B,T,H,b), T ≥ 1.

    Its backward pass takes time quadratic in T.
    """
    x, states = x0.expand(len(v), *x0.shape), []
    for k in range(A.shape[1]):
        x = torch.einsum("bhij,bhj->bhi", A[:, k], x) + v[:, k]
        states.append(x[:, None])
    return torch.cat(states, dim=1)


def authors_pscan(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute the states in ⌈log₂(T+1)⌉ rounds: A (B,T,H,b,b), v (B,T,H,b), x0 (H,b) -> (B,T,H,b)."""
    batch, length, heads, b = v.shape
    rounds = length.bit_length()
    n_zeros = 2**rounds - length - 1
    x = pad(torch.cat([x0.expand(batch, 1, heads, b), v], dim=1), (0, 0, 0, 0, 0, n_zeros))  # (B, L, H, b)
    products = pad(A, (0, 0, 0, 0, 0, 0, 0, n_zeros))[:, :, None]  # (B, L − 1, 1, H, b, b)
    for r in range(rounds):
        group = 2 ** (r + 1)
        halves = x.view(batch, -1, group, heads, b)
        left, right = halves[:, :, : group // 2], halves[:, :, group // 2 :]
        used, kept = products[:, ::2], products[:, 1::2]
        extended = torch.einsum("bnchij,bnhjk->bnchik", used[:, 1:], kept[:, :, -1])
        products = torch.cat([kept, extended], dim=2)
        right = right + torch.einsum("bnchij,bnhj->bnchi", used, left[:, :, -1])
        x = torch.cat([left, right], dim=2)
    return x.view(batch, -1, heads, b)[:, 1 : length + 1]
