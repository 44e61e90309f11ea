"""Discretised state-space systems x ↦ Ā x + B̄ u, one with one input per channel, and the layout of their states.

H channels have n stored complex states each (`hippo`). Ā is diagonal, or diagonal minus a matrix of rank one that mixes
the stored half with its conjugates: Ā x = a ⊙ x − q · 2 Re Σ r ⊙ x. A step takes O(n) time per channel.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

DISCRETISATIONS = ("zoh", "bilinear")


class Transition(NamedTuple):
    """The matrices Ā of H channels: complex a, q, r (H, n) with q and r None if Ā is diagonal."""

    a: Tensor
    q: Tensor | None = None
    r: Tensor | None = None

    def times(self, x: Tensor) -> Tensor:
        """Return the product Ā x: complex (…, H, n) -> (…, H, n)."""
        moved = self.a * x
        if self.q is None or self.r is None:
            return moved
        return moved - self.q * twice_real(self.r * x).unsqueeze(-1)

    @property
    def transposed(self) -> Transition:
        """The transposed matrices Āᵀ, not conjugated."""
        return Transition(self.a, self.r, self.q)

    def matrix(self) -> Tensor:
        """Return the real matrices M (H, 2n, 2n) with planes(Ā x) = planes(x) M."""
        rotation = torch.stack([torch.cat([self.a.real, self.a.imag], -1), torch.cat([-self.a.imag, self.a.real], -1)])
        n = self.a.shape[-1]
        tiled = torch.eye(n, dtype=rotation.dtype, device=rotation.device).repeat(1, 2)  # (n, 2n)
        M = (rotation[:, :, None] * tiled).permute(1, 0, 2, 3).flatten(1, 2)  # (H, 2n, 2n)
        if self.q is None or self.r is None:
            return M
        return M - reading(self.r).unsqueeze(-1) * planes(self.q).unsqueeze(-2)


def diagonal(poles: Tensor, B: Tensor, dt: Tensor, rule: str) -> tuple[Transition, Tensor]:
    """Return Ā and B̄ (H, n) of x' = Λ x + B u, discretised with the step Δ: poles and B (H, n), dt (H, 1).

    "zoh" holds the input: Ā = e^{ΔΛ}, B̄ = Δ (e^{ΔΛ} − 1)/(ΔΛ) B, finite at Λ = 0. "bilinear" is the trapezium rule.

    >>> a, B = diagonal(torch.zeros(1, 1) + 0j, torch.ones(1, 1) + 0j, torch.full((1, 1), 0.5), "zoh")
    >>> a.a.item(), B.item()
    ((1+0j), (0.5+0j))
    """
    step = dt * poles
    if rule == "zoh":
        return Transition(step.exp()), dt * growth(step) * B
    return Transition((1 + step / 2) / (1 - step / 2)), dt * B / (1 - step / 2)


def growth(z: Tensor) -> Tensor:
    """Return (e^z − 1)/z, and 1 at z = 0, without cancellation near 0: complex (…) -> (…)."""
    none = z == 0
    safe = torch.where(none, 1, z)
    return torch.where(none, 1 + z / 2, torch.expm1(safe) / safe)


def low_rank(poles: Tensor, P: Tensor, B: Tensor, dt: Tensor) -> tuple[Transition, Tensor]:
    """Return Ā and B̄ (H, n) of x' = (diag(Λ) − P P*) x + B u by the trapezium rule: poles, P and B (H, n), dt (H, 1).

    Ā = (I − Δ/2 A)⁻¹ (I + Δ/2 A) = 2R − I with R = (I − Δ/2 A)⁻¹, which is a diagonal matrix minus one of rank one by
    Woodbury's identity; B̄ = Δ R B.
    """
    half = dt / 2
    D = 1 / (1 - half * poles)
    gain = half / (1 + half * twice_real(P.conj() * D * P).unsqueeze(-1))  # (H, 1), real
    q, r = gain * D * P, D * P.conj()
    solved = D * B - q * twice_real(r * B).unsqueeze(-1)
    return Transition(2 * D - 1, 2 * q, r), dt * solved


def twice_real(x: Tensor) -> Tensor:
    """Return 2 Re Σ x, the sum over all states from the stored half of them: complex (…, n) -> real (…)."""
    return 2 * x.real.sum(-1)


def planes(x: Tensor) -> Tensor:
    """Return the real parts, followed by the imaginary parts: complex (…, n) -> (…, 2n).

    >>> planes(torch.tensor([1 + 2j, 3 + 4j])).tolist()
    [1.0, 3.0, 2.0, 4.0]
    """
    return torch.cat([x.real, x.imag], -1)


def from_planes(x: Tensor) -> Tensor:
    """Return the complex numbers with these real and imaginary parts, the inverse of `planes`: (…, 2n) -> (…, n)."""
    real, imaginary = x.chunk(2, -1)
    return torch.complex(real, imaginary)


def reading(c: Tensor) -> Tensor:
    """Return the real weights r with r · planes(x) = 2 Re Σ c ⊙ x: complex (…, n) -> (…, 2n)."""
    return 2 * torch.cat([c.real, -c.imag], -1)
