"""Scans with one diagonal matrix for all letters: x_k = λ ⊙ x_{k−1} + v_k, complex numbers as planes.

`sequential` is the reference; `pscan` is plain torch in ⌈log₂T⌉ rounds; `fused` is compiled for the CPU.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numba import njit
from torch import Tensor

from fsa2lrnn.extra.baselines.kernels.harness import WORTH_COMPILING, CompiledRecurrence, takes
from fsa2lrnn.lrnn.scans import check_method


def scan_diagonal(rates: Tensor, v: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """Return all states: rates λ (2P,), v (B, T, 2P), x0 (B, 2P), each as planes -> x_1 … x_T (B, T, 2P).

    `method` is one of `METHODS`, or "auto" or "letters" for the fastest one.

    Raises:
        UnsupportedFormat: for an unknown method, or a device or dtype that the compiled method does not support.

    >>> i = torch.tensor([0.0, 1.0])
    >>> scan_diagonal(i, torch.zeros(1, 3, 2), torch.tensor([[1.0, 0.0]]))[0].tolist()
    [[0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    check_method(method, {**METHODS, "letters": None})
    if method in ("auto", "letters"):
        is_worth_it = v.numel() >= WORTH_COMPILING and takes(rates, v, x0)
        method = "fused" if is_worth_it else "pscan"
    return METHODS[method](rates, v, x0)


def times(rates: Tensor, x: Tensor) -> Tensor:
    """Return λ ⊙ x for numbers as planes: (2P,), (…, 2P) -> (…, 2P)."""
    (a, b), (real, imaginary) = rates.chunk(2, -1), x.chunk(2, -1)
    return torch.cat([a * real - b * imaginary, a * imaginary + b * real], -1)


def sequential(rates: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute `scan_diagonal` letter by letter, with autograd."""
    x, states = x0, []
    for v_k in v.unbind(1):
        x = times(rates, x) + v_k
        states.append(x)
    return torch.stack(states, dim=1) if states else v


def pscan(rates: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute `scan_diagonal` in ⌈log₂T⌉ rounds: after round i each state includes the last 2^i letters."""
    length = v.shape[1]
    if not length:
        return v
    x = torch.cat([(v[:, 0] + times(rates, x0)).unsqueeze(1), v[:, 1:]], dim=1)
    reach = 1
    while reach < length:
        x = torch.cat([x[:, :reach], x[:, reach:] + times(rates, x[:, :-reach])], dim=1)
        rates, reach = times(rates, rates), 2 * reach
    return x


def fused(rates: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute `scan_diagonal` in compiled loops on the CPU; differentiable once."""
    return _scan(rates, v, x0)[0]


METHODS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "sequential": sequential,
    "pscan": pscan,
    "fused": fused,
}


@njit(cache=True, nogil=True, fastmath={"contract"})
def _forward(rates, v, x0, x, first, last):  # type: ignore[no-untyped-def]
    """Write x (B, T, 2P)."""
    _, length, width = v.shape
    P = width // 2
    factor, state = np.empty(width, v.dtype), np.empty(width, v.dtype)  # the compiler knows that these do not overlap
    factor[:] = rates
    for n in range(first, last):
        state[:] = x0[n]
        for t in range(length):
            row = v[n, t]
            for p in range(P):
                real, imaginary = state[p], state[P + p]
                state[p] = row[p] + factor[p] * real - factor[P + p] * imaginary
                state[P + p] = row[P + p] + factor[p] * imaginary + factor[P + p] * real
            x[n, t] = state


@njit(cache=True, nogil=True, fastmath={"contract"})
def _backward(rates, v, x0, x, dx, drates, dv, dx0, first, last):  # type: ignore[no-untyped-def]
    """Write dv (B, T, 2P) and dx0 (B, 2P), and add to drates (2P,): dv_k = g_k with g_k = dx_k + conj(λ) g_{k+1}."""
    _, length, width = x.shape
    P = width // 2
    factor, g, total = np.empty(width, x.dtype), np.empty(width, x.dtype), np.zeros(width, x.dtype)
    factor[:] = rates
    for n in range(first, last):
        g[:] = 0
        for t in range(length - 1, -1, -1):
            before, row = x[n, t - 1] if t else x0[n], dx[n, t]
            for i in range(width):
                g[i] += row[i]
            dv[n, t] = g
            for p in range(P):
                real, imaginary = g[p], g[P + p]
                total[p] += real * before[p] + imaginary * before[P + p]
                total[P + p] += imaginary * before[p] - real * before[P + p]
                g[p] = factor[p] * real + factor[P + p] * imaginary
                g[P + p] = factor[p] * imaginary - factor[P + p] * real
        dx0[n] = g
    drates += total


_scan = CompiledRecurrence(
    name="diagonal scan",
    arguments=("rates", "v", "x0"),
    n_shared=1,
    shapes=lambda rates, v, x0: [v.shape],
    n_returned=1,
    cost=2,
    instead="pscan",
    forward=_forward,
    backward=_backward,
)
