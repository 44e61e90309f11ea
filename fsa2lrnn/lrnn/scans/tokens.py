"""Scans whose transitions are looked up in a table by token: A (B,T,H,b,b) is never written out."""

from __future__ import annotations

import torch
from torch import Tensor


def sequential_tokens(tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """The reference, a look-up a step: (B,T), tables (N,H,b,b) and (N,H,b), x0 (B,H,b) -> (B,T,H,b)."""
    x, states = x0, []
    for token in tokens.unbind(1):
        x = (A[token] @ x.unsqueeze(-1)).squeeze(-1) + v[token]
        states.append(x)
    return torch.stack(states, dim=1) if states else x0.new_zeros(len(x0), 0, *x0.shape[1:])


def letters(tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """The same with every row of the table applied to every state, and the wanted result picked out.

    N times the multiplications, but as one matrix product a head, so that for few rows it is faster, above all
    backward: the gradient of the table is a product too, in place of B·T blocks to be added up.
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
