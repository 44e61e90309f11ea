"""S4 (Gu et al. 2022): a layer with HiPPO-LegS, a diagonal matrix minus a matrix of rank one, in each channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from fsa2lrnn.nn.layers.channels import ChannelConfig, ChannelLayer, complex_of, pairs
from fsa2lrnn.nn.layers.kernels import channels, generating, hippo
from fsa2lrnn.nn.layers.kernels.channels import System
from fsa2lrnn.nn.layers.kernels.transition import low_rank


@dataclass(frozen=True)
class S4Config(ChannelConfig):
    """The configuration of S4: HiPPO-LegS with Im B clipped to ±2, discretised by the trapezium rule."""


class S4Layer(ChannelLayer):
    """The layer x_k = Ā x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k, A = diag(Λ) − P P*, in each channel, then gates.

    The parameters are those of `ChannelLayer` and `P` (S, n, 2). The layer trains C, whereas the published code trains
    C̃ for a fixed kernel length (`generating.truncated`). The method "fft" computes the impulse response from its
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
    def start(config: Any) -> hippo.Start:
        """Return the initial system, HiPPO-LegS with Im B clipped to ±2."""
        return hippo.normal_plus_low_rank(config.d_state)

    def system(self) -> System:
        """Return the system discretised by the trapezium rule, in double precision."""
        transition, B = low_rank(*self._continuous(), self.dt())
        return System(transition, B, complex_of(self.C), self.D.double())

    def run(self, u: Tensor, state: Tensor, method: str) -> tuple[Tensor, Tensor]:
        """Return the outputs before the gates and the last state: (B, T, H), (B, H, N) -> (B, T, H), (B, H, N)."""
        if method != "fft" or not u.shape[1]:
            return super().run(u, state, method)
        system, length = self.system(), u.shape[1]
        C = generating.truncated(system.transition, system.C, length)
        taps = generating.cauchy_taps(*self._continuous(), C, self.dt(), length)
        return channels.fft(system, u, state, taps.T)

    def _continuous(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.poles(), self.of_channels(complex_of(self.P)), self.of_channels(complex_of(self.B))
