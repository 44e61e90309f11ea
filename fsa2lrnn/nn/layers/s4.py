"""S4 and S4D (Gu et al. 2022): HiPPO-LegS, a diagonal matrix minus one of rank one, or a diagonal matrix per channel.

The method "fft" of S4 computes the impulse response from its generating function. At the L-th roots of unity, Σ_{l<L}
K_l ω^l = C̃ᵀ(I − ωĀ)⁻¹B̄ with C̃ᵀ = Cᵀ(I − Ā^L). A is diagonal minus a matrix of rank one, so this value is made of
four sums of fractions (Cauchy matrices). A Fourier transform turns the values into the K_l.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fsa2lrnn.nn.layers import channel_scans
from fsa2lrnn.nn.layers.base import check_one_of
from fsa2lrnn.nn.layers.channel_layer import (
    ChannelConfig,
    ChannelLayer,
    Start,
    complex_of,
    diagonal_inv,
    diagonal_legs,
    diagonal_lin,
    normal_plus_low_rank,
    pairs,
)
from fsa2lrnn.nn.layers.channel_scans import System
from fsa2lrnn.nn.layers.transitions import DISCRETISATIONS, Transition, diagonal, from_planes, low_rank, planes


def truncated(transition: Transition, C: Tensor, length: int) -> Tensor:
    """Return C̃ᵀ = Cᵀ(I − Ā^L), which ends the generating function after L terms: complex C (H, n) -> (H, n)."""
    M = torch.linalg.matrix_power(transition.transposed.matrix(), length)
    return C - from_planes((planes(C).unsqueeze(-2) @ M).squeeze(-2))


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


@dataclass(frozen=True)
class S4Config(ChannelConfig):
    """The configuration of S4: HiPPO-LegS with Im B clipped to ±2, discretised by the trapezium rule."""


class S4Layer(ChannelLayer):
    """The layer x_k = Ā x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k, A = diag(Λ) − P P*, in each channel, then gates.

    The parameters are those of `ChannelLayer` and `P` (S, n, 2). The layer trains C, whereas the published code trains
    C̃ for a fixed kernel length (`truncated`). The method "fft" computes the impulse response from its
    generating function with Cauchy kernels.
    """

    Config = S4Config

    def __init__(self, width_in: int, config: S4Config) -> None:
        super().__init__(width_in, config)
        self.P = nn.Parameter(pairs(self.start(config).P, config.copies))

    @property
    def family(self) -> str | None:
        """The family of input-independent layers, "lti"."""
        return "lti"

    @staticmethod
    def start(config: Any) -> Start:
        """Return the initial system, HiPPO-LegS with Im B clipped to ±2."""
        return normal_plus_low_rank(config.d_state)

    def system(self) -> System:
        """Return the system discretised by the trapezium rule, in double precision."""
        transition, B = low_rank(*self._continuous(), self.dt())
        return System(transition, B, complex_of(self.C), self.D.double())

    def run(self, u: Tensor, state: Tensor, method: str) -> tuple[Tensor, Tensor]:
        """Return the outputs before the gates and the last state: (B, T, H), (B, H, N) -> (B, T, H), (B, H, N)."""
        if method != "fft" or not u.shape[1]:
            return super().run(u, state, method)
        system, length = self.system(), u.shape[1]
        C = truncated(system.transition, system.C, length)
        taps = cauchy_taps(*self._continuous(), C, self.dt(), length)
        return channel_scans.fft(system, u, state, taps.T)

    def _continuous(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.poles(), self.of_channels(complex_of(self.P)), self.of_channels(complex_of(self.B))


STARTS = {"lin": diagonal_lin, "inv": diagonal_inv, "legs": diagonal_legs}


@dataclass(frozen=True)
class S4DConfig(ChannelConfig):
    """The configuration of S4D: `init` is "lin", "inv" or "legs" (`STARTS`), `discretisation` "zoh" or "bilinear"."""

    init: str = "lin"
    discretisation: str = "zoh"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, init=STARTS, discretisation=DISCRETISATIONS)


class S4DLayer(ChannelLayer):
    """The layer x_k = Ā ⊙ x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k in each channel, then gates (`ChannelLayer`).

    >>> import torch
    >>> layer = S4DLayer(4, S4DConfig(width=4, d_state=8))
    >>> y, state = layer(torch.ones(2, 5, 4), layer.initial_state(2))
    >>> y.shape, state.shape
    (torch.Size([2, 5, 4]), torch.Size([2, 4, 8]))
    """

    Config = S4DConfig

    @property
    def family(self) -> str | None:
        """The family of input-independent diagonal layers, "lti-diagonalisable"."""
        return "lti-diagonalisable"

    @staticmethod
    def start(config: Any) -> Start:
        """Return the initial system that `config.init` names: poles and B, complex (n,) each."""
        return STARTS[config.init](config.d_state)

    def system(self) -> System:
        """Return the discretised system, in double precision."""
        B = self.of_channels(complex_of(self.B))
        transition, B = diagonal(self.poles(), B, self.dt(), self.config.discretisation)
        return System(transition, B, complex_of(self.C), self.D.double())
