"""λ, B and C of S5 and LRU as planes, from their parameters, with derivatives written out.

A state has so few numbers that autograd's own work on them, operation by operation, would take longer than they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.lrnn.autograd import typed_once_differentiable
from fsa2lrnn.lrnn.compiled.threads import flat


class Poles(NamedTuple):
    """λ and what B is multiplied by, complex128 (P,), and the derivatives of each by every parameter, (P,) or 0."""

    rates: np.ndarray
    gain: np.ndarray
    of_rates: tuple[Any, ...]
    of_gain: tuple[Any, ...]


Numbers = Sequence[np.ndarray]  # parameters (P,) in double precision
Rule = Callable[[Numbers], Poles]


def planes_of(rule: Rule, factor: float, B: Tensor, C: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """λ (2P,), gain ⊙ B (2P, H) and factor · C (H, 2P) as planes, with y = Re C x; differentiable once.

    `rule` makes `Poles` of the parameters (P,) in double precision; B is (P, H, 2) and C (H, P, 2), all on the CPU.

    >>> rule = lambda numbers: Poles(1j * numbers[0], 2 * numbers[0] + 0j, (1j,), (2.0,))
    >>> one = torch.ones(1, 1, 2)
    >>> [x.tolist() for x in planes_of(rule, 1.0, one, one, torch.tensor([3.0]))]
    [[0.0, 3.0], [[6.0], [6.0]], [[1.0, -1.0]]]
    """
    return _Planes.apply(rule, factor, B, C, *parameters)  # type: ignore[no-any-return]


class _Planes(Function):
    @staticmethod
    def forward(
        ctx: Any, rule: Rule, factor: float, B: Tensor, C: Tensor, *parameters: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        B, (P, H, _) = B.contiguous(), B.shape
        with np.errstate(all="ignore"):  # what is not finite shows in the outputs, as it does in torch
            poles = rule([x.detach().numpy().astype(np.float64) for x in parameters])
        rates, driven, reads = B.new_empty(2 * P), B.new_empty(2 * P, H), B.new_empty(H, 2 * P)
        flat_B, flat_C, *made = flat((B, C.contiguous(), rates, driven, reads))
        _write(poles.rates, poles.gain, flat_B, flat_C, factor, made[0], made[1], made[2])
        ctx.save_for_backward(B)
        ctx.poles, ctx.factor = poles, factor
        return rates, driven, reads

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, drates: Tensor, ddriven: Tensor, dreads: Tensor) -> tuple[Tensor | None, ...]:
        (B,), poles, (P, H) = ctx.saved_tensors, ctx.poles, ddriven.shape
        dB, dC = torch.empty_like(B), B.new_empty(H, P // 2, 2)
        of_gain = np.empty(P // 2, np.complex128)
        given = flat((B, ddriven.contiguous(), dreads.contiguous(), dB, dC))
        _back(poles.gain, ctx.factor, given[0], given[1], given[2], given[3], given[4], of_gain)
        of_rates = _complex(drates.numpy())
        with np.errstate(all="ignore"):
            found = [
                torch.from_numpy((of_rates * a + of_gain * b).real).to(B.dtype)
                for a, b in zip(poles.of_rates, poles.of_gain, strict=True)
            ]
        return None, None, dB, dC, *found


def _complex(planes: np.ndarray) -> np.ndarray:
    """conj(x) of planes (2P,) as complex128 (P,)."""
    P = len(planes) // 2
    return planes[:P] - 1j * planes[P:].astype(np.float64)


@njit(cache=True, nogil=True)
def _write(rates, gain, B, C, factor, of_rates, of_B, of_C):  # type: ignore[no-untyped-def]
    P, H = len(rates), len(B) // (2 * len(rates))
    for p in range(P):
        of_rates[p], of_rates[P + p] = rates[p].real, rates[p].imag
        a, b = gain[p].real, gain[p].imag
        for h in range(H):
            x, y = B[2 * (p * H + h)], B[2 * (p * H + h) + 1]
            of_B[p * H + h], of_B[(P + p) * H + h] = a * x - b * y, a * y + b * x
    for h in range(H):
        for p in range(P):
            i, j = 2 * h * P + p, 2 * (h * P + p)
            of_C[i], of_C[i + P] = factor * C[j], -factor * C[j + 1]


@njit(cache=True, nogil=True)
def _back(gain, factor, B, of_B, of_C, dB, dC, of_gain):  # type: ignore[no-untyped-def]
    """Writes the gradients of B and C, and the conjugate of that of the gain."""
    P, H = len(gain), len(B) // (2 * len(gain))
    for p in range(P):
        a, b = gain[p].real, gain[p].imag
        real = imaginary = 0.0
        for h in range(H):
            i, j, k = p * H + h, (P + p) * H + h, 2 * (p * H + h)
            x, y = np.float64(of_B[i]), np.float64(of_B[j])
            dB[k], dB[k + 1] = a * x + b * y, a * y - b * x
            real += x * B[k] + y * B[k + 1]
            imaginary += y * B[k] - x * B[k + 1]
        of_gain[p] = complex(real, -imaginary)
    for h in range(H):
        for p in range(P):
            i, j = 2 * h * P + p, 2 * (h * P + p)
            dC[j], dC[j + 1] = factor * of_C[i], -factor * of_C[i + P]
