"""S4 (Gu et al. 2022): HiPPO-LegS in each channel, a diagonal matrix less one of rank one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from fsa2lrnn.extra.baselines.channels import ChannelConfig, ChannelLayer, complex_of, pairs
from fsa2lrnn.extra.baselines.kernels import channels, generating, hippo
from fsa2lrnn.extra.baselines.kernels.channels import System
from fsa2lrnn.extra.baselines.kernels.transition import low_rank


@dataclass(frozen=True)
class S4Config(ChannelConfig):
    """S4 as released: LegS with Im B cut to ±2 (`hippo.normal_plus_low_rank`), rank one, the trapezium rule."""


class S4Layer(ChannelLayer):
    """x_k = Ā x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k with A = diag(Λ) − P P* in each channel, then gates.

    Beside the parameters of `ChannelLayer` there is `P` (S, n, 2). C is trained itself, not what the released code puts
    in its place for the length of its kernel (`generating.truncated`): a longer word changes nothing of the layer.

    The method "fft" makes the impulse response from its generating function, Cauchy kernels and all.
    """

    Config = S4Config

    def __init__(self, width_in: int, config: S4Config) -> None:
        super().__init__(width_in, config)
        self.P = nn.Parameter(pairs(self.start(config).P, config.copies))

    @property
    def family(self) -> str | None:
        """Input-independent."""
        return "lti"

    @staticmethod
    def start(config: Any) -> hippo.Start:
        """LegS."""
        return hippo.normal_plus_low_rank(config.d_state)

    def system(self) -> System:
        """Ā, B̄, C and D."""
        transition, B = low_rank(*self._continuous(), self.dt())
        return System(transition, B, complex_of(self.C), self.D.double())

    def run(self, u: Tensor, state: Tensor, method: str) -> tuple[Tensor, Tensor]:
        """`forward` by a method by name, before the gates."""
        if method != "fft" or not u.shape[1]:
            return super().run(u, state, method)
        system, length = self.system(), u.shape[1]
        C = generating.truncated(system.transition, system.C, length)
        taps = generating.cauchy_taps(*self._continuous(), C, self.dt(), length)
        return channels.fft(system, u, state, taps.T)

    def _continuous(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.poles(), self.of_channels(complex_of(self.P)), self.of_channels(complex_of(self.B))
