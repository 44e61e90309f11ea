"""The recurrence of every channel, compiled for the CPU: x_k = (Ā + diag(B̄ u_k)) x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k.

Without inputs it is an impulse response. States are complex numbers in double precision. The backward pass computes the
states of each word again and stores those of one word at a time.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from torch import Tensor

from fsa2lrnn.extra.baselines.kernels.harness import CompiledRecurrence
from fsa2lrnn.extra.baselines.kernels.transition import Transition


def recur(transition: Transition, B: Tensor, C: Tensor, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return all outputs and the last state: u (B, T, H), state (B, H, 2n) -> (B, T, H), (B, H, 2n).

    Differentiable once.
    """
    (a, q, r), none = transition, torch.zeros_like(B)
    coefficients = torch.stack([a, none if q is None else q, none if r is None else r, B, C], 1)  # (H, 5, n)
    parts = torch.view_as_real(coefficients).to(u.dtype)
    y, last = _recur(parts, u, state.unflatten(-1, (2, -1)).mT)
    return y, last.mT.flatten(-2)


@njit(nogil=True, fastmath={"contract", "reassoc"}, inline="always")
def _complex(parts):  # type: ignore[no-untyped-def]
    return parts[..., 0] + 1j * parts[..., 1]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _forward(k, u, state, y, last, first_word, last_word):  # type: ignore[no-untyped-def]
    """Write y (B, T, H) and the last state (B, H, n, 2) from k (H, 5, n, 2), which holds a, q, r, B and C."""
    for h in range(len(k)):
        a, q, r, B, C = _complex(k[h])
        for w in range(first_word, last_word):
            x = _complex(state[w, h])
            mixed = 2 * (r * x).sum().real
            for t in range(u.shape[1]):
                inflow, later, read = u[w, t, h], 0.0, 0.0
                for i in range(len(x)):
                    x[i] = (a[i] + inflow * B[i]) * x[i] - mixed * q[i] + inflow * B[i]
                    later += 2 * (r[i] * x[i]).real
                    read += 2 * (C[i] * x[i]).real
                y[w, t, h], mixed = read, later
            last[w, h, :, 0], last[w, h, :, 1] = x.real, x.imag


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _backward(k, u, state, y, last, dy, dlast, dk, du, dstate, first_word, last_word):  # type: ignore[no-untyped-def]
    """Compute the states of each word again, then write du and dstate and add to dk in a backward pass.

    The gradient g of a state is that of its real part plus i times that of its imaginary part; with z = x y the
    gradient of x is conj(y) times that of z.
    """
    length = u.shape[1]
    for h in range(len(k)):
        a, q, r, B, C = _complex(k[h])
        n = len(a)
        d, x, mixed = np.zeros((5, n), np.complex128), np.empty((length + 1, n), np.complex128), np.empty(length + 1)
        for w in range(first_word, last_word):
            x[0] = _complex(state[w, h])
            mixed[0] = 2 * (r * x[0]).sum().real
            for t in range(length):
                inflow, now, later = u[w, t, h], mixed[t], 0.0
                for i in range(n):
                    x[t + 1, i] = (a[i] + inflow * B[i]) * x[t, i] - now * q[i] + inflow * B[i]
                    later += 2 * (r[i] * x[t + 1, i]).real
                mixed[t + 1] = later
            g = _complex(dlast[w, h])
            for t in range(length - 1, -1, -1):
                inflow, of_read, of_mixed, of_inflow = u[w, t, h], 2 * dy[w, t, h], 0.0, 0.0
                for i in range(n):
                    g[i] += of_read * np.conj(C[i])
                    d[4, i] += of_read * np.conj(x[t + 1, i])
                    of_mixed -= 2 * (g[i] * np.conj(q[i])).real
                for i in range(n):
                    of_factor = g[i] * np.conj(x[t, i])
                    of_arriving = of_factor + g[i]
                    d[0, i] += of_factor
                    d[1, i] -= mixed[t] * g[i]
                    d[2, i] += of_mixed * np.conj(x[t, i])
                    d[3, i] += inflow * of_arriving
                    of_inflow += (of_arriving * np.conj(B[i])).real
                    g[i] = np.conj(a[i] + inflow * B[i]) * g[i] + of_mixed * np.conj(r[i])
                du[w, t, h] = of_inflow
            dstate[w, h, :, 0], dstate[w, h, :, 1] = g.real, g.imag
        dk[h, :, :, 0] += d.real
        dk[h, :, :, 1] += d.imag


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
