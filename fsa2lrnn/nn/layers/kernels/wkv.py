"""RWKV-4's weighted average: y_t = (Σ_{i<t} e^{(t−1−i)w + k_i} v_i + e^{u + k_t} v_t) / (the same sum with v = 1).

Numerator and denominator are states of a diagonal linear recurrence with the input-independent rates e^w. They are
stored as p e^o and q e^o, where o is the largest exponent so far, so that no exponential overflows. `reference`
computes letter by letter; `scanned` computes all exponents o first, and then the recurrences of p and q by a scan.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fsa2lrnn.nn import scans
from fsa2lrnn.nn.scans import check_method, scan

NOTHING = -1e38  # the exponent of a sum of no terms; −∞ would make ∞ − ∞
METHODS = tuple(scans.METHODS)


def wkv(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
    """Return the averages and the last state: w < 0, u (C,), k, v (B, T, C), state (B, 3, C) -> (B, T, C), (B, 3, C).

    A state holds p, q and o; the initial state is 0, 0 and `NOTHING`. `method` is "sequential" for `reference`,
    another one of `scan`, or "auto" or "letters" for the fastest one.

    Raises:
        UnsupportedFormat: for an unknown method.

    >>> k, v, one = torch.zeros(1, 3, 1), torch.tensor([1.0, 3.0, 5.0]).view(1, 3, 1), torch.zeros(1)
    >>> wkv(one, one, k, v, torch.tensor([0, 0, NOTHING]).view(1, 3, 1))[0].flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    method = "auto" if method == "letters" else method
    check_method(method, {**scans.METHODS, **scans.GPU_METHODS})
    if not k.shape[1]:
        return v, state
    return reference(w, u, k, v, state) if method == "sequential" else scanned(w, u, k, v, state, method)


def reference(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the averages of `wkv` letter by letter, with autograd, for T > 0."""
    averages = []
    for k_t, v_t in zip(k.unbind(1), v.unbind(1), strict=True):
        y, state = step(w, u, k_t, v_t, state)
        averages.append(y)
    return torch.stack(averages, dim=1), state


def step(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the average and the state after one letter: k and v (B, C), state (B, 3, C) -> (B, C), (B, 3, C)."""
    p, q, o = state.unbind(1)
    n = torch.maximum(o, u + k)
    before, now = (o - n).exp(), (u + k - n).exp()
    y = (before * p + now * v) / (before * q + now)
    n = torch.maximum(o + w, k)
    before, now = (o + w - n).exp(), (k - n).exp()
    return y, torch.stack([before * p + now * v, before * q + now, n], dim=1)


def scanned(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor, method: str) -> tuple[Tensor, Tensor]:
    """Compute the averages of `wkv` by one scan of p and q, for T > 0.

    The backward pass treats exponents as constants, because all results depend on the products p e^o and q e^o only.
    """
    p, q, o = state.unbind(1)
    with torch.no_grad():
        # max_{i ≤ t} (k_i + (t − i)w) is t·w plus the largest k_i − i·w so far; rounding it changes no result.
        elapsed = torch.arange(k.shape[1] + 1, device=k.device).unsqueeze(-1) * w
        tops = elapsed + torch.cat([o.unsqueeze(1), k - elapsed[1:]], 1).cummax(1).values  # (B, T + 1, C)
        n = torch.maximum(tops[:, :-1], u + k)
    before, after = torch.cat([o.unsqueeze(1), tops[:, 1:-1]], 1), tops[:, 1:]
    decay, new = (before + w - after).exp(), (k - after).exp()
    start = torch.cat([p, q], -1).unsqueeze(-1)
    A = torch.cat([decay, decay], -1)[..., None, None]
    x = scan(A, torch.cat([new * v, new], -1).unsqueeze(-1), start, method)
    earlier = torch.cat([start.unsqueeze(1), x[:, :-1]], 1)
    (P, Q), (p, q) = earlier.squeeze(-1).chunk(2, -1), x[:, -1].squeeze(-1).chunk(2, -1)
    share, now = (before - n).exp(), (u + k - n).exp()
    return (share * P + now * v) / (share * Q + now), torch.stack([p, q, tops[:, -1]], 1)
