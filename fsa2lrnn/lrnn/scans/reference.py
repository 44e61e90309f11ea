"""The sequential scan: the definition, one step at a time. T·H·b² multiplications, depth T."""

from __future__ import annotations

import torch
from torch import Tensor


def sequential(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """x_k = A_k x_{k-1} + v_k by the loop it says: A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b) -> (B,T,H,b).

    The loop runs over `unbind` views: slicing `A[:, k]` makes autograd allocate a gradient of A's full size a step.
    """
    x, states = x0, []
    for A_k, v_k in zip(A.unbind(1), v.unbind(1), strict=True):
        x = (A_k @ x.unsqueeze(-1)).squeeze(-1) + v_k
        states.append(x)
    return torch.stack(states, dim=1) if states else v.clone()
