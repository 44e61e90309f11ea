"""Mamba-2 (Dao & Gu 2024): a matrix state that decays by one number per head, S ← S exp(Δ A) + (Δ x) Bᵀ, y = S C.

Parameters have the names of Mamba2Simple in state-spaces/mamba, with one group.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import silu, softplus

from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.base import Hint
from fsa2lrnn.nn.layers.matrix_layer import MatrixConfig, MatrixLayer, drawn_steps, normed
from fsa2lrnn.nn.layers.matrix_scan import RankOneSteps
from fsa2lrnn.nn.rounding import RoundedNumbers


@dataclass(frozen=True)
class Mamba2Config(MatrixConfig):
    """A configuration with `heads` states of expand_v·block channels (headdim) and `block` numbers each (d_state)."""

    expand_v: float = 2.0


class Mamba2Layer(MatrixLayer):
    """The layer out_proj(norm((S C + D x) ⊙ SiLU(z))); x, B and C are convolved, with a bias, and pass a SiLU."""

    Config = Mamba2Config

    def __init__(self, width_in: int, config: Mamba2Config) -> None:
        H, N, P = config.heads, config.block, config.values
        gated = 0 if config.is_state else 1
        super().__init__(config, {"xBC": H * P + N + gated * N})
        self.in_proj = nn.Linear(width_in, gated * H * P + self.channels + H, bias=False)
        self.dt_bias = nn.Parameter(drawn_steps(H))
        self.A_log = nn.Parameter(torch.empty(H).uniform_(1, 16).log())
        if gated:
            if config.conv:
                self.conv_bias = nn.Parameter(0.1 * torch.randn(self.channels))
            self.D = nn.Parameter(torch.ones(H))
            self.norm = nn.RMSNorm(H * P, eps=1e-5)
            self.out_proj = nn.Linear(H * P, config.width, bias=False)

    @property
    def family(self) -> str | None:
        """The family of diagonal layers with entries in [0, 1], if each entry depends on one letter."""
        return None if self.config.conv else "diagonal[0,1]"

    def parameter_hints(self) -> dict[str, Hint]:
        """Return no weight decay for A_log, dt_bias and D, as in the published code."""
        return {name: Hint(decay=0.0) for name in ("A_log", "dt_bias", "D") if hasattr(self, name)}

    def _conv_bias(self) -> Tensor | None:
        return self.conv_bias

    def projected(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return x, B and C (…, C), and the gate and Δ (…, R)."""
        x = self.in_proj(u)
        first = x.shape[-1] - self.channels - self.config.heads
        return x[..., first : first + self.channels], torch.cat([x[..., :first], x[..., first + self.channels :]], -1)

    def steps(self, x: Tensor, rest: Tensor) -> RankOneSteps:
        """Return the steps: k = Δ B, v = x, q = C, with the same B and C for all heads."""
        config = self.config
        H, N = config.heads, config.block
        dt = softplus(rest[..., -H:] + self.dt_bias)
        x, B, C = x.tensor_split([H * config.values, H * config.values + N], dim=-1)
        k, g = B.unsqueeze(-2) * dt.unsqueeze(-1), (-self.A_log.exp() * dt).unsqueeze(-1)
        q = None if config.is_state else C.unsqueeze(-2).expand(*C.shape[:-1], H, N)
        return RankOneSteps(g.unsqueeze(-3), None, k.unsqueeze(-3), x.unflatten(-1, (H, -1)).unsqueeze(-3), q)

    def _rounded_steps(self, u: RoundedNumbers) -> rounding.RoundedSteps:
        H, size = self.config.heads, self.config.heads * self.config.values
        z = rounding.projected(u, self.in_proj.weight)
        x, z = rounding.with_silu(z[..., :-H]), z[..., -H:] - RoundedNumbers.exact(-self.dt_bias, u.kind)
        decay = rounding.decays(z, self.A_log.detach().double().exp())
        # softplus is the identity above 20, where the decay differs by less than this number.
        decay = z.of(decay.mid, decay.off + (z.size > 19) * 1e-10)
        dt = rounding.softplus_of(z)
        k, v = x[..., size:][..., None, :] * dt[..., None], x[..., :size].unflatten((H, -1))
        return rounding.RoundedSteps(decay[..., None, :, None], None, k[..., None, :, :], v[..., None, :, :])

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the projection of the gated, then normed outputs."""
        o = (o + self.D[:, None] * steps.v[..., 0, :, :]).flatten(-2)
        return self.out_proj(normed(o * silu(rest[..., : o.shape[-1]]), self.norm.weight))
