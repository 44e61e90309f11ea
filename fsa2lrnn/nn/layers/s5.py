"""S5 (Smith et al. 2023): one diagonal complex system for all channels together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers.base import Hint, LayerConfig, check_width
from fsa2lrnn.nn.layers.kernels import hippo
from fsa2lrnn.nn.layers.kernels.mixing import check_mixing
from fsa2lrnn.nn.layers.kernels.transition import DISCRETISATIONS, growth
from fsa2lrnn.nn.layers.spectral import SpectralLayer

C_STARTS = ("trunc_standard_normal", "lecun_normal", "complex_normal")
CLIPPED = -1e-4  # the largest Re Λ with `clip_eigs`
_WITHIN = 0.8796256610342398  # the standard deviation of a standard normal number truncated to ±2


@dataclass(frozen=True)
class S5Config(LayerConfig):
    """The configuration of S5. Raises `UnsupportedFormat` for values out of range.

    Args:
        width: H, the number of channels in the input and in the output.
        ssm_size: the number of states, of which half are stored if `conj_sym`.
        blocks: the number of LegS matrices along the initial diagonal, each of ssm_size/blocks states.
        c_init: the initial distribution of C, by its name in the published code.
        discretisation: "zoh" or "bilinear".
        dt_min, dt_max: the range of the initial Δ of a state, log-uniform.
        clip_eigs: whether Re Λ is clipped to at most −1e-4; the published code does not clip by default.
        conj_sym: whether states come in conjugate pairs.
        mixing: the gates after the recurrence (`kernels.mixing`), with the approximate GELU.
    """

    width: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is
    ssm_size: int = 64
    blocks: int = 1
    c_init: str = "trunc_standard_normal"
    discretisation: str = "zoh"
    dt_min: float = 1e-3
    dt_max: float = 1e-1
    clip_eigs: bool = True
    conj_sym: bool = True
    mixing: str = "half_glu1"

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UnsupportedFormat(f"width = {self.width}: a layer needs at least one channel")
        if self.blocks < 1 or self.ssm_size < 1 or self.ssm_size % self.blocks:
            raise UnsupportedFormat(
                f"blocks = {self.blocks}: {self.ssm_size} states cannot be cut evenly into so many, "
                "give a divisor of ssm_size"
            )
        hippo.check_size(self.ssm_size, "ssm_size")
        if self.conj_sym:
            hippo.check_even(self.ssm_size // self.blocks, "ssm_size/blocks")
        if self.c_init not in C_STARTS:
            raise UnsupportedFormat(f"c_init {self.c_init!r} is not known: choose one of {', '.join(C_STARTS)}")
        if self.discretisation not in DISCRETISATIONS:
            raise UnsupportedFormat(f"discretisation {self.discretisation!r} is none of {', '.join(DISCRETISATIONS)}")
        if not 0 < self.dt_min <= self.dt_max < math.inf:
            raise UnsupportedFormat(
                f"dt_min = {self.dt_min}, dt_max = {self.dt_max}: give 0 < dt_min ≤ dt_max, both finite"
            )
        check_mixing(self.mixing)
        check_width(max(self.width, self.ssm_size))

    @property
    def states(self) -> int:
        """The number P of stored complex states."""
        return self.ssm_size // 2 if self.conj_sym else self.ssm_size

    @property
    def entries(self) -> int:
        """The numbers per token in the widest intermediate result: 2H before the gates, or 2P for a complex state."""
        return 2 * max(self.width, self.states)


class S5Layer(SpectralLayer):
    """The layer x_k = Λ̄ ⊙ x_{k−1} + B̄ u_k, y_k = 2 Re C x_k + D ⊙ u_k, then gates; Re C x_k without `conj_sym`.

    The parameters are `Lambda_re`, `Lambda_im`, `log_step` (P,), `B` (P, H, 2), `C` (H, P, 2), `D` (H,) and those of
    `mixing`. The state is (B, 2P): pairs of a real and an imaginary part. Only `clip_eigs` keeps Re Λ below 0.
    """

    Config = S5Config

    def __init__(self, width_in: int, config: S5Config) -> None:
        super().__init__(width_in, config, config.states)
        H, P, N = config.width, config.states, config.ssm_size
        poles, V = (x[..., : P // config.blocks] for x in hippo.basis(N // config.blocks))
        V = torch.from_numpy(np.kron(np.eye(config.blocks), V))  # (N, P)
        poles = torch.from_numpy(np.tile(poles, config.blocks))
        self.Lambda_re, self.Lambda_im = nn.Parameter(poles.real.float()), nn.Parameter(poles.imag.float())
        B = V.mH @ _truncated_normal(N, H).double().to(V.dtype) / math.sqrt(N)
        if config.c_init == "complex_normal":
            C = torch.randn(H, P, dtype=torch.complex64)  # E|C|² = 1, ½ for either part
        else:
            fan_in = N if config.c_init == "trunc_standard_normal" else H * N
            C = torch.view_as_complex(torch.stack([_truncated_normal(H, N) for _ in "ri"], -1) / math.sqrt(fan_in))
            C = C.to(V.dtype) @ V
        self.B, self.C = (nn.Parameter(torch.view_as_real(x.resolve_conj()).float().clone()) for x in (B, C))
        self.D = nn.Parameter(torch.randn(H))
        span = math.log(config.dt_max / config.dt_min)
        self.log_step = nn.Parameter(torch.rand(P) * span + math.log(config.dt_min))

    def parameter_hints(self) -> dict[str, Hint]:
        """Return the learning rate of the run, without weight decay, for Λ, Δ and B."""
        return {name: Hint(decay=0.0) for name in ("Lambda_re", "Lambda_im", "log_step", "B")}

    def discretised(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return Λ̄ (P,), B̄ (P, H) and C (H, P), complex128, with y = Re C x + D ⊙ u: C includes the factor 2."""
        real = self.Lambda_re.double()
        poles = torch.complex(real.clamp(max=CLIPPED) if self.config.clip_eigs else real, self.Lambda_im.double())
        B, C = (torch.view_as_complex(x.double()) for x in (self.B, self.C))
        dt = self.log_step.double().exp()
        z = dt * poles
        if self.config.discretisation == "zoh":
            rates, gain = z.exp(), dt * growth(z)
        else:
            rates, gain = (1 + z / 2) / (1 - z / 2), dt / (1 - z / 2)
        # Only one of each pair of conjugate states is stored: Re counts twice.
        return rates, gain.unsqueeze(-1) * B, 2 * C if self.config.conj_sym else C


def _truncated_normal(*shape: int) -> Tensor:
    """Return normal numbers of this shape, truncated to ±2 standard deviations and scaled to variance 1."""
    return nn.init.trunc_normal_(torch.empty(shape), 0.0, 1.0, -2.0, 2.0) / _WITHIN
