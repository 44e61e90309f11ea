"""LRU (Orvieto et al. 2023): a diagonal complex recurrence with |λ| < 1 by construction and no discretisation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers.base import Hint, LayerConfig, check_width
from fsa2lrnn.nn.layers.kernels.mixing import check_mixing
from fsa2lrnn.nn.layers.spectral import SpectralLayer


@dataclass(frozen=True)
class LRUConfig(LayerConfig):
    """The configuration of an LRU layer. Raises `UnsupportedFormat` for values out of range.

    Args:
        width: H, the number of channels in the input and in the output.
        states: N, the number of complex states; they do not come in conjugate pairs.
        r_min, r_max: the range of the initial |λ|, with |λ|² uniform.
        max_phase: the largest initial phase of λ; phases are uniform in [0, max_phase].
        mixing: the gates after the recurrence (`fsa2lrnn.nn.layers.kernels.mixing`), with the approximate GELU.
    """

    width: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is
    states: int = 64
    r_min: float = 0.0
    r_max: float = 1.0
    max_phase: float = 6.28
    mixing: str = "glu"

    def __post_init__(self) -> None:
        for name in ("width", "states"):
            if getattr(self, name) < 1:
                raise UnsupportedFormat(f"{name} = {getattr(self, name)}: a layer needs at least one")
        if not 0 <= self.r_min < self.r_max <= 1:
            raise UnsupportedFormat(f"r_min = {self.r_min}, r_max = {self.r_max}: give 0 ≤ r_min < r_max ≤ 1")
        if not 0 < self.max_phase < math.inf:
            raise UnsupportedFormat(f"max_phase = {self.max_phase}: give a finite angle above 0")
        check_mixing(self.mixing)
        check_width(max(self.width, 2 * self.states))

    @property
    def entries(self) -> int:
        """The numbers per token in the widest intermediate result: 2H before the gates, or 2N for a complex state."""
        return 2 * max(self.width, self.states)


class LRULayer(SpectralLayer):
    """The layer x_k = λ ⊙ x_{k−1} + e^γ ⊙ B u_k, y_k = Re C x_k + D ⊙ u_k with λ = exp(−e^ν + i e^θ), then gates.

    The parameters are `nu_log` (ν), `theta_log` (θ), `gamma_log` (γ), all (N,), `B` (N, H, 2), `C` (H, N, 2), `D` (H,)
    and those of `mixing`. The initial γ is log √(1 − |λ|²); training changes it independently of λ. The state is
    (B, 2N). The layer follows minimal-LRU of N. Zucchet; models use LayerNorm where that code uses BatchNorm.
    """

    Config = LRUConfig

    def __init__(self, width_in: int, config: LRUConfig) -> None:
        super().__init__(width_in, config, config.states)
        H, N = config.width, config.states
        square = torch.rand(N, dtype=torch.float64) * (config.r_max**2 - config.r_min**2) + config.r_min**2
        nu = torch.log(-0.5 * square.clamp(min=torch.finfo(torch.float32).tiny).log())
        self.nu_log = nn.Parameter(nu.float())
        self.theta_log = nn.Parameter(
            (torch.rand(N) * config.max_phase).clamp(min=torch.finfo(torch.float32).tiny).log()
        )
        self.gamma_log = nn.Parameter((0.5 * torch.log(-torch.expm1(-2 * nu.exp()))).float())  # no digit is lost near 1
        self.B = nn.Parameter(torch.randn(N, H, 2) / math.sqrt(2 * H))
        self.C = nn.Parameter(torch.randn(H, N, 2) / math.sqrt(N))
        self.D = nn.Parameter(torch.randn(H))

    def parameter_hints(self) -> dict[str, Hint]:
        """Return half the learning rate of the run, without weight decay, for ν, θ, γ and B."""
        return {name: Hint(decay=0.0, factor=0.5) for name in ("nu_log", "theta_log", "gamma_log", "B")}

    def discretised(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return λ (N,), e^γ B (N, H) and C (H, N), in double precision."""
        rates = torch.complex(-self.nu_log.double().exp(), self.theta_log.double().exp()).exp()
        B, C = (torch.view_as_complex(x.double()) for x in (self.B, self.C))
        return rates, self.gamma_log.double().exp().unsqueeze(-1) * B, C
