"""The impulse response of a normal-plus-low-rank system from its generating function (Gu et al. 2022, S4).

At the L-th roots of unity, Σ_{l<L} K_l ω^l = C̃ᵀ(I − ωĀ)⁻¹B̄ with C̃ᵀ = Cᵀ(I − Ā^L). A is diagonal minus a matrix of
rank one, so this value is made of four sums of fractions (Cauchy matrices). A Fourier transform turns the values into
the K_l.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fsa2lrnn.nn.layers.kernels.transition import Transition, from_planes, planes


def truncated(transition: Transition, C: Tensor, length: int) -> Tensor:
    """Return C̃ᵀ = Cᵀ(I − Ā^L), which ends the generating function after L terms: complex C (H, n) -> (H, n)."""
    M = torch.linalg.matrix_power(transition.transposed.matrix(), length)
    return C - from_planes((planes(C).unsqueeze(-2) @ M).squeeze(-2))


def untruncated(transition: Transition, C: Tensor, length: int) -> Tensor:
    """Return C from the C̃ that the published S4 code stores, the inverse of `truncated`: complex (H, n) -> (H, n)."""
    M = torch.linalg.matrix_power(transition.transposed.matrix(), length)
    eye = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    return from_planes(torch.linalg.solve(eye - M, planes(C).unsqueeze(-2), left=False).squeeze(-2))


def cauchy_taps(poles: Tensor, P: Tensor, B: Tensor, C: Tensor, dt: Tensor, length: int) -> Tensor:
    """Return the impulse response K_l, l < length: poles, P, B and C̃ complex128 (H, n), dt (H, 1) -> (H, length).

    With ω = e^{−2πij/L}, the factor 1 + ω stays in the numerators, so that all terms are finite at ω = −1.
    """
    angle = 2 * math.pi / length * torch.arange(length // 2 + 1, dtype=dt.dtype, device=dt.device)
    omega = torch.polar(torch.ones_like(angle), -angle)
    over, z = 1 + omega, 2 * (1 - omega)  # (J,)

    def fractions(pole: Tensor) -> Tensor:
        return dt.unsqueeze(-1) / (z - over * (dt * pole).unsqueeze(-1))  # (H, n, J)

    stored, others = fractions(poles), fractions(poles.conj())

    def total(v: Tensor, w: Tensor) -> Tensor:
        product = (v * w).unsqueeze(-2)
        return (product @ stored + product.conj() @ others).squeeze(-2)  # (H, J)

    Q = P.conj()
    mixed = over * total(C, P) * total(Q, B) / (1 + over * total(Q, P))
    return torch.fft.irfft(2 * (total(C, B) - mixed), n=length)
