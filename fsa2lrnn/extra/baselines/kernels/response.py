"""Impulse responses: the states Ā^l B̄ of every channel, and K_l = 2 Re Σ C ⊙ Ā^l B̄.

`fused` is compiled for the CPU; `doubled`, in ⌈log₂ length⌉ rounds, is for GPUs, where each operation is a launch, and
for small inputs. All compute in double precision, whatever the dtype of the layer: the inputs are small, and powers
accumulate errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from fsa2lrnn.extra.baselines.kernels.harness import WORTH_COMPILING, CompiledRecurrence
from fsa2lrnn.extra.baselines.kernels.transition import Transition, from_planes, planes, reading


class Response(NamedTuple):
    """An impulse response K (length, H) and its states as planes (H, length, 2n), or (H, 0, 2n) if not requested."""

    K: Tensor
    states: Tensor


def respond(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """Return the response for l < length: complex128 B, C (H, n) -> float64 results, differentiable in all inputs.

    Entries of a state smaller than `least` become 0: where a layer computes in single precision, products with them
    would be denormal, which is slow.

    >>> half = Transition(torch.full((1, 1), 0.5 + 0j))
    >>> respond(half, torch.ones(1, 1) + 0j, torch.ones(1, 1) + 0j, 4).K.flatten().tolist()
    [2.0, 1.0, 0.5, 0.25]
    """
    is_worth_it = B.device.type == "cpu" and length * B.numel() >= WORTH_COMPILING
    return (fused if is_worth_it else doubled)(transition, B, C, length, least, with_states)


def doubled(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """Compute `respond` in rounds: each multiplies all known states by a power of Ā and so doubles their number."""
    x, (a, q, _) = planes(B).unsqueeze(1), transition  # (H, known, 2n)
    M = None if q is None else transition.matrix()
    while x.shape[1] < length:
        more = x[:, : length - x.shape[1]]
        if M is None:
            x, a = torch.cat([x, planes(a.unsqueeze(1) * from_planes(more))], 1), a * a
        else:
            x, M = torch.cat([x, more @ M], 1), M @ M
    states = x[:, :length]
    states = torch.where(states.abs() < least, 0, states)
    return Response((states @ reading(C).unsqueeze(-1)).squeeze(-1).T, states if with_states else states[:, :0])


def fused(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """Compute `respond` in compiled loops on the CPU; differentiable once."""
    (a, q, r), none = transition, torch.zeros_like(B)
    numbers = torch.stack([a, none if q is None else q, none if r is None else r, C, B], 1)  # (H, 5, n)
    coefficients = torch.view_as_real(numbers).permute(0, 1, 3, 2).flatten(1, 2)  # (H, 10, n)
    kept = length if with_states else 0
    run = _responses._replace(shapes=lambda _, k: [(len(k), length), (len(k), kept, 2 * k.shape[2])])
    K, states = run(B.real.new_full((1,), least), coefficients)
    return Response(K.T, states)


@njit(nogil=True, fastmath={"contract", "reassoc"}, inline="always")
def _run(c, least, x, K):  # type: ignore[no-untyped-def]
    """Write the states x (L, 2, n) and the outputs K (L,) from c (10, n), which holds planes of a, q, r, C and B."""
    n = c.shape[1]
    for l in range(len(K)):  # noqa: E741 - the index of K
        read = mixed = 0.0
        if l:
            for i in range(n):
                mixed += 2 * (c[4, i] * x[l - 1, 0, i] - c[5, i] * x[l - 1, 1, i])
        for i in range(n):
            real, imaginary = c[8, i], c[9, i]
            if l:
                real = c[0, i] * x[l - 1, 0, i] - c[1, i] * x[l - 1, 1, i] - mixed * c[2, i]
                imaginary = c[0, i] * x[l - 1, 1, i] + c[1, i] * x[l - 1, 0, i] - mixed * c[3, i]
            real, imaginary = 0.0 if abs(real) < least else real, 0.0 if abs(imaginary) < least else imaginary
            x[l, 0, i], x[l, 1, i] = real, imaginary
            read += c[6, i] * real - c[7, i] * imaginary
        K[l] = 2 * read


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _forward(least, k, K, states, first, last):  # type: ignore[no-untyped-def]
    """Write K (H, L) and the first states.shape[1] states (H, ·, 2n) from k (H, 10, n)."""
    length, n = K.shape[1], k.shape[2]
    # The compiler knows that arrays made here do not overlap, and computes several states at once.
    c, x, y = np.empty((10, n)), np.empty((length, 2, n)), np.empty(length)
    for h in range(first, last):
        c[:] = k[h]
        _run(c, least[0], x, y)
        K[h] = y
        for t in range(states.shape[1]):
            states[h, t, :n], states[h, t, n:] = x[t, 0], x[t, 1]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _backward(least, k, K, states, dK, dstates, dleast, dk, first, last):  # type: ignore[no-untyped-def]
    length, n = K.shape[1], k.shape[2]
    c, d, x, y = np.empty((10, n)), np.empty((10, n)), np.empty((length, 2, n)), np.empty(length)
    g = np.empty((2, n))  # of the state at hand
    for h in range(first, last):
        c[:], d[:], g[:] = k[h], 0, 0
        _run(c, least[0], x, y)
        for l in range(length - 1, -1, -1):  # noqa: E741
            of_read = 2 * dK[h, l]
            for i in range(n):
                g[0, i] += of_read * c[6, i]
                g[1, i] -= of_read * c[7, i]
                d[6, i] += of_read * x[l, 0, i]
                d[7, i] -= of_read * x[l, 1, i]
            if states.shape[1]:
                g[0] += dstates[h, l, :n]
                g[1] += dstates[h, l, n:]
            if not l:
                break
            mixed = of_mixed = 0.0
            for i in range(n):
                mixed += 2 * (c[4, i] * x[l - 1, 0, i] - c[5, i] * x[l - 1, 1, i])
                of_mixed -= 2 * (c[2, i] * g[0, i] + c[3, i] * g[1, i])
            for i in range(n):
                real, imaginary, old, old_too = g[0, i], g[1, i], x[l - 1, 0, i], x[l - 1, 1, i]
                d[0, i] += real * old + imaginary * old_too
                d[1, i] += imaginary * old - real * old_too
                d[2, i] -= mixed * real
                d[3, i] -= mixed * imaginary
                d[4, i] += of_mixed * old
                d[5, i] -= of_mixed * old_too
                g[0, i] = c[0, i] * real + c[1, i] * imaginary + of_mixed * c[4, i]
                g[1, i] = c[0, i] * imaginary - c[1, i] * real - of_mixed * c[5, i]
        d[8], d[9] = g[0], g[1]
        dk[h] = d


_responses = CompiledRecurrence(
    name="impulse response",
    arguments=("least", "coefficients"),
    n_shared=1,
    shapes=lambda *_: [],
    n_returned=2,
    cost=1 << 9,
    instead="sequential",
    forward=_forward,
    backward=_backward,
)
