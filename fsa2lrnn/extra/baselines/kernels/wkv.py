"""RWKV-4's weighted average: y_t = (Σ_{i<t} e^{(t−1−i)w + k_i} v_i + e^{u + k_t} v_t) / (the same sum with v = 1).

Numerator and denominator are states of a diagonal linear recurrence with the input-independent rates e^w. They are
stored as p e^o and q e^o, where o is the largest exponent so far, so that no exponential overflows (`reference`).
`fused` is compiled for the CPU; its gradient is computed backwards, and its adjoint states have an exponent of their
own. `weighted` computes all weights of a piece of a word at once, as attention does, for GPUs, where each operation is
a launch.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.nn.functional import pad

from fsa2lrnn.extra.baselines.kernels.harness import CompiledRecurrence, takes
from fsa2lrnn.lrnn.scans import check_method

NOTHING = -1e38  # the exponent of a sum of no terms; −∞ would make ∞ − ∞
_WORTH_COMPILING = 1 << 11  # numbers; below, no number of calls makes up for seconds of compilation
_PIECE = 64  # letters whose weights are written out at once


def wkv(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
    """Return the averages and the last state: w < 0, u (C,), k, v (B, T, C), state (B, 3, C) -> (B, T, C), (B, 3, C).

    A state is p, q and o; that of the empty word is 0, 0 and `NOTHING`. `method` is one of `METHODS`, or "auto" or
    "letters" for the fastest one.

    Raises:
        UnsupportedFormat: for an unknown method.

    >>> k, v, one = torch.zeros(1, 3, 1), torch.tensor([1.0, 3.0, 5.0]).view(1, 3, 1), torch.zeros(1)
    >>> wkv(one, one, k, v, torch.tensor([0, 0, NOTHING]).view(1, 3, 1))[0].flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    check_method(method, {**METHODS, "letters": None})
    if method in ("auto", "letters"):
        is_worth_it = k.numel() >= _WORTH_COMPILING and takes(w, u, k, v, state)
        method = "fused" if is_worth_it else "sequential" if k.device.type == "cpu" else "weighted"
    return METHODS[method](w, u, k, v, state)


def reference(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `wkv` letter by letter, with autograd."""
    averages = []
    for k_t, v_t in zip(k.unbind(1), v.unbind(1), strict=True):
        y, state = step(w, u, k_t, v_t, state)
        averages.append(y)
    return torch.stack(averages, dim=1) if averages else v, state


def step(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the average and the state after one letter: k and v (B, C), state (B, 3, C) -> (B, C), (B, 3, C)."""
    p, q, o = state.unbind(1)
    n = torch.maximum(o, u + k)
    before, now = (o - n).exp(), (u + k - n).exp()
    y = (before * p + now * v) / (before * q + now)
    n = torch.maximum(o + w, k)
    before, now = (o + w - n).exp(), (k - n).exp()
    return y, torch.stack([before * p + now * v, before * q + now, n], dim=1)


def fused(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `wkv` in compiled loops on the CPU; differentiable once.

    The gradient with respect to the last state is that of p e^o and q e^o: all later results depend on these products
    only.
    """
    y, last = _average(w, u, k, v, state)
    return y, last


def weighted(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `wkv` as softmax-weighted sums, piece by piece; the state before a piece counts as one more letter."""
    averages = []
    for keys, values in zip(k.split(_PIECE, 1), v.split(_PIECE, 1), strict=True):
        y, state = _weighted(w, u, keys, values, state)
        averages.append(y)
    return torch.cat(averages, dim=1) if averages else v, state


def _weighted(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    p, q, o = state.unsqueeze(1).unbind(2)  # (B, 1, C)
    length, t = k.shape[1], torch.arange(k.shape[1], device=k.device)
    late = (t[:, None] - 1 - t).unsqueeze(-1)  # letters between the later and the earlier one
    is_later = pad(late < -1, (0, 0, 1, 0))  # (T, 1 + T, 1), what a state holds being before all
    whole = torch.where(q == 0, 1, q)  # of no letters; o is then `NOTHING`
    before = (o + whole.log() + t.unsqueeze(-1) * w).unsqueeze(2)  # (B, T, 1, C)
    weights = torch.cat([before, k.unsqueeze(1) + torch.where(late < 0, u, late * w)], dim=2)
    weights = weights.masked_fill(is_later, -torch.inf).softmax(2)
    y = (weights * torch.cat([p / whole, v], dim=1).unsqueeze(1)).masked_fill(is_later, 0).sum(2)
    exponents = torch.cat([o + length * w, k + (length - 1 - t).unsqueeze(-1) * w], dim=1)
    n = exponents.amax(1)
    shares = (exponents - n.unsqueeze(1)).exp()
    p, q = ((shares * torch.cat([first, rest], dim=1)).sum(1) for first, rest in ((p, v), (q, torch.ones_like(v))))
    return y, torch.stack([p, q, n], dim=1)


METHODS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "sequential": reference,
    "fused": fused,
    "weighted": weighted,
}


@njit(cache=True, nogil=True, fastmath={"contract"})
def _forward(w, u, k, v, state, y, last, states, first_word, last_word):  # type: ignore[no-untyped-def]
    """Write y (B, T, C), the last state (B, 3, C) and all states (B, T + 1, 3, C)."""
    _, length, width = k.shape
    for n in range(first_word, last_word):
        states[n, 0] = state[n]
        for t in range(length):
            for c in range(width):
                key, value = k[n, t, c], v[n, t, c]
                p, q, o = states[n, t, 0, c], states[n, t, 1, c], states[n, t, 2, c]
                before, now, _ = _shares(o, u[c] + key)
                y[n, t, c] = (before * p + now * value) / (before * q + now)
                before, now, top = _shares(o + w[c], key)
                states[n, t + 1, 0, c] = before * p + now * value
                states[n, t + 1, 1, c] = before * q + now
                states[n, t + 1, 2, c] = top
        last[n] = states[n, length]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _backward(  # type: ignore[no-untyped-def]
    w, u, k, v, state, y, last, states, dy, dlast, dw, du, dk, dv, dstate, first_word, last_word
):
    """Write dk, dv and dstate, and add to dw and du; the adjoints of numerator and denominator are G e^e and F e^e."""
    _, length, width = k.shape
    G, F, e = np.empty(width, k.dtype), np.empty(width, k.dtype), np.empty(width, k.dtype)
    for n in range(first_word, last_word):
        # Gradients of the last state are those of a function of p e^o and q e^o, as all that follows is.
        G[:], F[:], e[:] = dlast[n, 0], dlast[n, 1], -last[n, 2]
        for c in range(width):
            if G[c] == 0 and F[c] == 0:
                e[c] = NOTHING
        for t in range(length - 1, -1, -1):
            for c in range(width):
                key, value = k[n, t, c], v[n, t, c]
                p, q, o = states[n, t, 0, c], states[n, t, 1, c], states[n, t, 2, c]
                before, now, top = _shares(o, u[c] + key)
                per = dy[n, t, c] / (before * q + now)
                weight = now * per  # of this letter in its own average
                of_now = weight * (value - y[n, t, c])
                later = math.exp(key + e[c])  # of this letter in all later ones
                dv[n, t, c] = weight + later * G[c]
                dk[n, t, c] = of_now + later * (G[c] * value + F[c])
                du[c] += of_now
                faded = e[c] + w[c]
                dw[c] += math.exp(faded + o) * (G[c] * p + F[c] * q)
                old, new, e[c] = _shares(faded, -top)
                G[c] = old * G[c] + new * per
                F[c] = old * F[c] - new * per * y[n, t, c]
        for c in range(width):
            scale = math.exp(e[c] + states[n, 0, 2, c])
            p, q = states[n, 0, 0, c], states[n, 0, 1, c]
            dstate[n, 0, c], dstate[n, 1, c] = scale * G[c], scale * F[c]
            dstate[n, 2, c] = scale * (G[c] * p + F[c] * q)


@njit(cache=True, nogil=True)
def _shares(x, y):  # type: ignore[no-untyped-def]
    """Return e^{x−m}, e^{y−m} and m = max(x, y); one of the two exponentials is 1."""
    if x >= y:
        return x - x + 1, math.exp(y - x), x
    return math.exp(x - y), y - y + 1, y


_average = CompiledRecurrence(
    name="average",
    arguments=("w", "u", "k", "v", "state"),
    n_shared=2,
    shapes=lambda w, u, k, v, state: [k.shape, state.shape, (len(k), k.shape[1] + 1, *state.shape[1:])],
    n_returned=2,
    cost=100,
    instead="sequential",
    forward=_forward,
    backward=_backward,
)
