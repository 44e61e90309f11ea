"""The liquid recurrence of every channel: x_k = (Ā + diag(B̄ u_k)) x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k.

The transition depends on the input, so an impulse response does not exist. `sequential` is the definition; `fused` is
compiled for the CPU. Its backward pass computes the states of each word again and stores those of one word at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numba import njit
from torch import Tensor

from fsa2lrnn.extra.baselines.kernels.channels import System
from fsa2lrnn.extra.baselines.kernels.harness import WORTH_COMPILING, CompiledRecurrence, takes
from fsa2lrnn.extra.baselines.kernels.transition import from_planes, planes, twice_real
from fsa2lrnn.lrnn.scans import check_method


def liquid(system: System, u: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
    """Return all outputs and the last state: u (B, T, H), state (B, H, 2n) -> (B, T, H), (B, H, 2n).

    `method` is one of `METHODS`, or "auto" or "letters" for the fastest one.

    Raises:
        UnsupportedFormat: for an unknown method.
    """
    check_method(method, {**METHODS, "letters": None})
    if method in ("auto", "letters"):
        is_worth_it = u.shape[1] * state.numel() >= WORTH_COMPILING and takes(u, state)
        method = "fused" if is_worth_it else "sequential"
    return METHODS[method](system, u, state)


def sequential(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `liquid` letter by letter, with autograd and a state in double precision."""
    outputs, x = [], state.double()
    for u_k in u.unbind(1):
        y, x = step(system, u_k, x)
        outputs.append(y)
    return torch.stack(outputs, dim=1) if outputs else u, x.to(state.dtype)


def step(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs and the state after one letter: u (B, H), state (B, H, 2n) -> (B, H), (B, H, 2n)."""
    x, arriving = from_planes(state), system.B * u.unsqueeze(-1)
    x = system.transition.times(x) + arriving * x + arriving
    return (twice_real(system.C * x) + system.D * u).to(u.dtype), planes(x).to(state.dtype)


def fused(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `liquid` in compiled loops on the CPU; differentiable once."""
    (a, q, r), B, C, D = system
    none = torch.zeros_like(a)
    numbers = torch.stack([a, none if q is None else q, none if r is None else r, B, C], 1)  # (H, 5, n)
    coefficients = torch.view_as_real(numbers).permute(0, 1, 3, 2).flatten(1, 2)  # (H, 10, n)
    y, last = _recur(coefficients.to(u.dtype), u, state)
    return y + D.to(u.dtype) * u, last


METHODS: dict[str, Callable[[System, Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "sequential": sequential,
    "fused": fused,
}


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _forward(k, u, state, y, last, first_word, last_word):  # type: ignore[no-untyped-def]
    """Write y (B, T, H) and the last state (B, H, 2n) from k (H, 10, n), which holds planes of a, q, r, B and C."""
    channels, _, n = k.shape
    zero = k.dtype.type(0)
    # The compiler knows that arrays made here do not overlap, and computes several states at once.
    c, x = np.empty((10, n), k.dtype), np.empty((2, n), k.dtype)
    for h in range(channels):
        c[:] = k[h]
        for w in range(first_word, last_word):
            x[0], x[1] = state[w, h, :n], state[w, h, n:]
            total = zero
            for i in range(n):
                total += c[4, i] * x[0, i] - c[5, i] * x[1, i]
            for t in range(u.shape[1]):
                inflow, mixed = u[w, t, h], 2 * total
                total = read = zero
                for i in range(n):
                    arriving, arriving_too = inflow * c[6, i], inflow * c[7, i]
                    factor, factor_too = c[0, i] + arriving, c[1, i] + arriving_too
                    real = factor * x[0, i] - factor_too * x[1, i] + arriving - mixed * c[2, i]
                    imaginary = factor * x[1, i] + factor_too * x[0, i] + arriving_too - mixed * c[3, i]
                    x[0, i], x[1, i] = real, imaginary
                    total += c[4, i] * real - c[5, i] * imaginary
                    read += c[8, i] * real - c[9, i] * imaginary
                y[w, t, h] = 2 * read
            last[w, h, :n], last[w, h, n:] = x[0], x[1]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _backward(k, u, state, y, last, dy, dlast, dk, du, dstate, first_word, last_word):  # type: ignore[no-untyped-def]
    """Compute the states of each word again, then write du and dstate and add to dk in a backward pass."""
    channels, _, n = k.shape
    length, zero = u.shape[1], k.dtype.type(0)
    c, d, g = np.empty((10, n), k.dtype), np.empty((10, n), k.dtype), np.empty((2, n), k.dtype)
    x, mixed = np.empty((length + 1, 2, n), k.dtype), np.empty(length + 1, k.dtype)
    for h in range(channels):
        c[:], d[:] = k[h], 0
        for w in range(first_word, last_word):
            x[0, 0], x[0, 1] = state[w, h, :n], state[w, h, n:]
            total = zero
            for i in range(n):
                total += c[4, i] * x[0, 0, i] - c[5, i] * x[0, 1, i]
            mixed[0] = 2 * total
            for t in range(length):
                inflow, mix, total = u[w, t, h], mixed[t], zero
                for i in range(n):
                    arriving, arriving_too = inflow * c[6, i], inflow * c[7, i]
                    factor, factor_too = c[0, i] + arriving, c[1, i] + arriving_too
                    real = factor * x[t, 0, i] - factor_too * x[t, 1, i] + arriving - mix * c[2, i]
                    imaginary = factor * x[t, 1, i] + factor_too * x[t, 0, i] + arriving_too - mix * c[3, i]
                    x[t + 1, 0, i], x[t + 1, 1, i] = real, imaginary
                    total += c[4, i] * real - c[5, i] * imaginary
                mixed[t + 1] = 2 * total
            g[0], g[1] = dlast[w, h, :n], dlast[w, h, n:]
            for t in range(length - 1, -1, -1):
                inflow, mix, of_read = u[w, t, h], mixed[t], 2 * dy[w, t, h]
                of_mixed = of_inflow = zero
                for i in range(n):
                    g[0, i] += of_read * c[8, i]
                    g[1, i] -= of_read * c[9, i]
                    d[8, i] += of_read * x[t + 1, 0, i]
                    d[9, i] -= of_read * x[t + 1, 1, i]
                    of_mixed -= 2 * (g[0, i] * c[2, i] + g[1, i] * c[3, i])
                for i in range(n):
                    real, imaginary, old, old_too = g[0, i], g[1, i], x[t, 0, i], x[t, 1, i]
                    of_factor, of_factor_too = real * old + imaginary * old_too, imaginary * old - real * old_too
                    d[0, i] += of_factor
                    d[1, i] += of_factor_too
                    d[2, i] -= mix * real
                    d[3, i] -= mix * imaginary
                    d[4, i] += of_mixed * old
                    d[5, i] -= of_mixed * old_too
                    d[6, i] += inflow * (of_factor + real)
                    d[7, i] += inflow * (of_factor_too + imaginary)
                    of_inflow += (of_factor + real) * c[6, i] + (of_factor_too + imaginary) * c[7, i]
                    factor, factor_too = c[0, i] + inflow * c[6, i], c[1, i] + inflow * c[7, i]
                    g[0, i] = factor * real + factor_too * imaginary + of_mixed * c[4, i]
                    g[1, i] = factor * imaginary - factor_too * real - of_mixed * c[5, i]
                du[w, t, h] = of_inflow
            dstate[w, h, :n], dstate[w, h, n:] = g[0], g[1]
        dk[h] += d


_recur = CompiledRecurrence(
    name="liquid recurrence",
    arguments=("coefficients", "u", "state"),
    n_shared=1,
    shapes=lambda coefficients, u, state: [u.shape, state.shape],
    n_returned=2,
    cost=1 << 9,
    instead="sequential",
    forward=_forward,
    backward=_backward,
)
