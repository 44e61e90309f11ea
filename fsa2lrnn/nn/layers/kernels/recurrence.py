"""The recurrence of every channel, compiled for the CPU: x_k = (Ā + diag(B̄ u_k)) x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k.

From the state B̄ and inputs 0 it computes an impulse response. States are complex numbers of the inputs' precision. The
backward pass computes the states of each word again and stores those of one word at a time.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.nn.compiled import at_once, cuts, thread_count, typed_once_differentiable
from fsa2lrnn.nn.layers.kernels.transition import Transition, from_planes, planes

WORTH_COMPILING = 1 << 13  # numbers; for fewer, no number of calls makes up for the seconds of compilation
_COST = 1 << 9  # multiplications per entry of the outputs or states, roughly
_SHARES = 4  # groups of words; the order in which their gradients are added does not depend on the number of threads


def recur(transition: Transition, B: Tensor, C: Tensor, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return all outputs without D u, and the last state: u (B, T, H), state (B, H, 2n) -> (B, T, H), (B, H, 2n).

    The result is differentiable once; u and the state are both float32 or both float64, on the CPU.
    """
    (a, q, r), none = transition, torch.zeros_like(B)
    coefficients = torch.stack([a, none if q is None else q, none if r is None else r, B, C], 1)  # (H, 5, n)
    start = from_planes(state)
    y, last = _Recur.apply(coefficients.to(start.dtype), u, start)  # type: ignore[misc]
    return y, planes(last)


class _Recur(Function):
    @staticmethod
    def forward(ctx: Any, k: Tensor, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        k, u, state = (x.contiguous() for x in (k, u, state))
        y, last = torch.empty_like(u), torch.empty_like(state)
        n_threads = thread_count(_COST * max(y.numel(), last.numel()))
        run = partial(_forward, *(x.detach().resolve_conj().numpy() for x in (k, u, state, y, last)))
        at_once([partial(run, *words) for words in cuts(len(u), n_threads)], n_threads)
        ctx.save_for_backward(k, u, state)
        return y, last

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dy: Tensor, dlast: Tensor) -> tuple[Tensor, ...]:
        k, u, state = ctx.saved_tensors
        # The groups of words depend on the shapes alone, so that the sums do not depend on the number of threads.
        shares = cuts(len(u), _SHARES)
        dk, du, dstate = k.new_zeros(len(shares), *k.shape), torch.empty_like(u), torch.empty_like(state)
        arrays = [x.contiguous().resolve_conj().numpy() for x in (k, u, state, dy, dlast)]
        jobs = [
            partial(_backward, *arrays, of_share.numpy(), du.numpy(), dstate.numpy(), *words)
            for of_share, words in zip(dk, shares, strict=True)
        ]
        at_once(jobs, min(len(jobs), torch.get_num_threads()))
        return dk.sum(0), du, dstate


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _forward(k, u, state, y, last, first_word, last_word):  # type: ignore[no-untyped-def]
    """Write y (B, T, H) and the last state (B, H, n) from k (H, 5, n), which holds a, q, r, B and C."""
    zero, two = u.dtype.type(0), u.dtype.type(2)  # all numbers have the inputs' precision
    for h in range(len(k)):
        a, q, r, B, C = k[h].copy()  # the compiler knows that the copy overlaps no other array
        for w in range(first_word, last_word):
            x = state[w, h].copy()
            mixed = two * (r * x).sum().real
            for t in range(u.shape[1]):
                inflow, later, read = u[w, t, h], zero, zero
                for i in range(len(x)):
                    x[i] = (a[i] + inflow * B[i]) * x[i] - mixed * q[i] + inflow * B[i]
                    later += (r[i] * x[i]).real
                    read += (C[i] * x[i]).real
                y[w, t, h], mixed = two * read, two * later
            last[w, h] = x


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _backward(k, u, state, dy, dlast, dk, du, dstate, first_word, last_word):  # type: ignore[no-untyped-def]
    """Compute the states of each word again, then write du and dstate and add to dk in a backward pass.

    The gradient g of a state is that of its real part plus i times that of its imaginary part; with z = x y the
    gradient of x is conj(y) times that of z.
    """
    length, zero, two = u.shape[1], u.dtype.type(0), u.dtype.type(2)
    for h in range(len(k)):
        a, q, r, B, C = k[h].copy()
        n = len(a)
        d, x, mixed = np.zeros((5, n), k.dtype), np.empty((length + 1, n), k.dtype), np.empty(length + 1, u.dtype)
        for w in range(first_word, last_word):
            x[0] = state[w, h]
            mixed[0] = two * (r * x[0]).sum().real
            for t in range(length):
                inflow, now, later = u[w, t, h], mixed[t], zero
                for i in range(n):
                    x[t + 1, i] = (a[i] + inflow * B[i]) * x[t, i] - now * q[i] + inflow * B[i]
                    later += (r[i] * x[t + 1, i]).real
                mixed[t + 1] = two * later
            # Backward in time: g is the gradient of x[t + 1], of_mixed that of the rank-one product 2 Re Σ r x[t].
            g = dlast[w, h].copy()
            for t in range(length - 1, -1, -1):
                inflow, now, of_read = u[w, t, h], mixed[t], two * dy[w, t, h]
                of_mixed = of_inflow = zero
                for i in range(n):
                    g[i] += of_read * np.conj(C[i])
                    d[4, i] += of_read * np.conj(x[t + 1, i])
                    of_mixed -= two * (g[i] * np.conj(q[i])).real
                for i in range(n):
                    of_factor = g[i] * np.conj(x[t, i])
                    of_arriving = of_factor + g[i]
                    d[0, i] += of_factor
                    d[1, i] -= now * g[i]
                    d[2, i] += of_mixed * np.conj(x[t, i])
                    d[3, i] += inflow * of_arriving
                    of_inflow += (of_arriving * np.conj(B[i])).real
                    g[i] = np.conj(a[i] + inflow * B[i]) * g[i] + of_mixed * np.conj(r[i])
                du[w, t, h] = of_inflow
            dstate[w, h] = g
        dk[h] += d
