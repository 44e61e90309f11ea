"""Mamba-3 (SISO): Mamba-2 with a trapezoidal rule, and a rotation of keys and queries by cumulative angles.

S ← S exp(Δ A) + (1 − λ) Δ exp(Δ A) x⁻ B⁻ᵀ + λ Δ x Bᵀ with the last letter's x⁻ and rotated B⁻, then y = S C: two steps
of the scan per letter. B and C are rotated by the sum of Δ π tanh(angle) so far, the same for all heads before Δ: in
the rotating frame, the transition of the state is a decay times a rotation. Parameters have the names of Mamba3 in
state-spaces/mamba, with one group, without MIMO and without a norm of the output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, silu, softplus

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.selective.matrix_layer import MatrixConfig, MatrixLayer, drawn_steps, normed
from fsa2lrnn.extra.selective.matrix_scan import RankOneSteps
from fsa2lrnn.lrnn.layers.base import Hint

_SLOWEST = 1e-4  # −A is at least this


@dataclass(frozen=True)
class Mamba3Config(MatrixConfig):
    """A configuration with `heads` states of expand_v·block channels and `block` numbers each; a share `rope` rotates.

    The rotated numbers come in pairs. Each transition depends on two letters, so that reads="state" does not exist.
    """

    expand_v: float = 2.0
    conv: int = 0
    rope: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.conv or self.is_state:
            raise UnsupportedFormat(f'conv = {self.conv}, reads = {self.reads!r}: Mamba-3 takes 0 and "gated"')
        if self.rope not in (0.5, 1.0) or not self.angles:
            raise UnsupportedFormat(f"rope = {self.rope}, block = {self.block}: give 0.5 or 1.0, and a pair that turns")

    @property
    def angles(self) -> int:
        """The number of rotated pairs."""
        return int(self.block * self.rope) // 2


class Mamba3Layer(MatrixLayer):
    """The layer out_proj((S C + D x) ⊙ SiLU(z)); the state holds the angles, B and x of the last letter, then S."""

    Config = Mamba3Config

    def __init__(self, width_in: int, config: Mamba3Config) -> None:
        super().__init__(config, {})
        H, N, P = config.heads, config.block, config.values
        self.sizes = [H * P, H * P, N, N, H, H, H, config.angles]  # z, x, B, C, Δ, A, λ, angles
        self.in_proj = nn.Linear(width_in, sum(self.sizes), bias=False)
        self.dt_bias = nn.Parameter(drawn_steps(H))
        self.B_bias, self.C_bias = (nn.Parameter(torch.ones(H, 1, N)) for _ in range(2))
        self.B_norm, self.C_norm = (nn.RMSNorm(N, eps=1e-5) for _ in range(2))
        self.D = nn.Parameter(torch.ones(H))
        self.out_proj = nn.Linear(H * P, config.width, bias=False)

    @property
    def memory(self) -> int:
        """The numbers before S: angles (H, ·), B (H, N) and x (H, P)."""
        config = self.config
        return config.heads * (config.angles + config.block + config.values)

    def parameter_hints(self) -> dict[str, Hint]:
        """Return no weight decay for dt_bias and D, as in the published code."""
        return {name: Hint(decay=0.0) for name in ("dt_bias", "D")}

    def _read(self, u: Tensor, index: Tensor | None, memory: Tensor) -> tuple[RankOneSteps, Tensor, Tensor]:
        config, H = self.config, self.config.heads
        parts = self.in_proj(u)
        if index is not None:
            parts = embedding(index, parts)
        z, x, B, C, dt, A, trap, angles = parts.split(self.sizes, dim=-1)
        turned, B_before, x_before = memory.view(len(z), H, -1).split([config.angles, config.block, config.values], -1)
        dt, trap, x = softplus(dt + self.dt_bias), trap.sigmoid(), x.unflatten(-1, (H, -1))
        # −A is 1 + A for A ≥ 0, else 1/(1 − A).
        rate = (A.clamp(min=0) + (1 - A.clamp(max=0)).reciprocal()).clamp(min=_SLOWEST)
        angle = turned.unsqueeze(1) + (math.pi * angles.tanh().unsqueeze(-2) * dt.unsqueeze(-1)).cumsum(1)
        angle = angle.remainder(2 * math.pi)
        cos, sin = angle.cos(), angle.sin()
        B, C = (
            rotated(normed(y, norm.weight).unsqueeze(-2) + bias[:, 0], cos, sin)
            for y, norm, bias in ((B, self.B_norm, self.B_bias), (C, self.C_norm, self.C_bias))
        )
        earlier = [torch.cat([y.unsqueeze(1), now[:, :-1]], 1) for y, now in ((B_before, B), (x_before, x))]
        g = (-rate * dt).unsqueeze(-1)
        weights = ((1 - trap) * dt).unsqueeze(-1) * g.exp(), (trap * dt).unsqueeze(-1)
        pairs = (g, torch.zeros_like(g)), (earlier[0] * weights[0], B * weights[1]), (earlier[1], x)
        stacked = (torch.stack(pair, 2) for pair in pairs)
        after = torch.cat([angle[:, -1], B[:, -1], x[:, -1]], dim=-1).flatten(1)
        g, k, v = stacked
        return RankOneSteps(g, None, k, v, C), z, after

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the projection of the gated outputs."""
        o = o + self.D[:, None] * steps.v[..., 1, :, :]
        return self.out_proj(o.flatten(-2) * silu(rest))


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the first pairs of adjacent entries by the given angles: (…, N), (…, n) -> (…, N)."""
    n = 2 * cos.shape[-1]
    first, second = x[..., 0:n:2], x[..., 1:n:2]
    turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)
    return torch.cat([turned, x[..., n:]], dim=-1)
