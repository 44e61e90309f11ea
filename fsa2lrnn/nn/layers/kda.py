"""Kimi Delta Attention and Gated DeltaNet 2: delta rules in which each column of a state has its own decay.

S ← S diag(exp g), then S ← S (I − (b ⊙ k) kᵀ) + (w ⊙ v) kᵀ. In KDA b and w are one number β = σ(·) per head, in GDN-2
they are one number per key and one per value. g = −exp(A_log)·softplus(f_proj u + dt_bias). Parameters have the names
of KimiDeltaAttention and GatedDeltaNet2 in flash-linear-attention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, logsigmoid

from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.base import Hint, LayerConfig
from fsa2lrnn.nn.layers.matrix_layer import MatrixConfig, MatrixLayer, drawn_steps, normed, unit
from fsa2lrnn.nn.layers.matrix_scan import RankOneSteps
from fsa2lrnn.nn.rounding import RoundedNumbers


@dataclass(frozen=True)
class KDAConfig(MatrixConfig):
    """The configuration of Kimi Delta Attention; `neg_eigval` doubles the rates of erasing (in KDA also of writing)."""

    neg_eigval: bool = False


@dataclass(frozen=True)
class GDN2Config(KDAConfig):
    """The configuration of Gated DeltaNet 2."""


class KDALayer(MatrixLayer):
    """The layer o_proj(norm(S q) ⊙ σ(g_proj u)); f_proj and g_proj are products of two matrices of rank at most V."""

    Config: ClassVar[type[LayerConfig]] = KDAConfig

    def __init__(self, width_in: int, config: KDAConfig) -> None:
        H, K, V = config.heads, config.block, config.values
        super().__init__(config, ({} if config.is_state else {"q": H * K}) | {"k": H * K, "v": H * V})
        for name, size in [*self.convolved.items(), *self._rates(config).items()]:
            self.add_module(f"{name}_proj", nn.Linear(width_in, size, bias=False))
        self.f_proj = nn.Sequential(nn.Linear(width_in, V, bias=False), nn.Linear(V, H * K, bias=False))
        self.A_log = nn.Parameter(torch.empty(H).uniform_(1, 16).log())
        self.dt_bias = nn.Parameter(drawn_steps(H * K))
        if not config.is_state:
            self.g_proj = nn.Sequential(nn.Linear(width_in, V, bias=False), nn.Linear(V, H * V))
            self.o_norm = nn.RMSNorm(V, eps=1e-5)
            self.o_proj = nn.Linear(H * V, config.width, bias=False)

    @staticmethod
    def _rates(config: KDAConfig) -> dict[str, int]:
        return {"b": config.heads}

    def parameter_hints(self) -> dict[str, Hint]:
        """Return no weight decay for A_log and dt_bias, as in the published code."""
        return {name: Hint(decay=0.0) for name in ("A_log", "dt_bias")}

    def _weight(self, names: dict[str, int]) -> Tensor:
        return torch.cat([getattr(self, f"{name}_proj").weight for name in names])

    def projected(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return q, k and v (…, C), and decays, rates and gate (…, R)."""
        rates = self._rates(self.config)
        x = linear(u, self._weight(self.convolved | rates))
        gate = [] if self.config.is_state else [self.g_proj(u)]
        return x[..., : self.channels], torch.cat([self.f_proj(u), x[..., self.channels :], *gate], dim=-1)

    @property
    def _scale(self) -> int:
        return 2 if self.config.neg_eigval else 1

    def steps(self, x: Tensor, rest: Tensor) -> RankOneSteps:
        """Return the steps: a = −exp(g) ⊙ b ⊙ k, v = w ⊙ v."""
        config, n_decays = self.config, self.config.heads * self.config.block
        rates = self._rates(config)

        def of_heads(y: Tensor) -> Tensor:
            return y.unflatten(-1, (config.heads, -1))

        gate = rest[..., n_decays : n_decays + sum(rates.values())].sigmoid()
        erase = of_heads(gate[..., : rates["b"]]) * self._scale
        write = of_heads(gate[..., rates["b"] :]) if "w" in rates else erase
        g = self.A_log.exp()[:, None] * logsigmoid(-of_heads(rest[..., :n_decays] + self.dt_bias))
        q, k, v = map(of_heads, x.split([self.convolved.get("q", 0), self.convolved["k"], self.convolved["v"]], -1))
        k = unit(k)
        q = unit(q) * config.block**-0.5 if "q" in self.convolved else None
        parts = g, -(erase * g.exp()) * k, k, write * v
        g, a, k, v = (part.unsqueeze(-3) for part in parts)
        return RankOneSteps(g, a, k, v, q)

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the projection of the normed, gated outputs."""
        o = normed(o, self.o_norm.weight).flatten(-2)
        return self.o_proj(o * rest[..., -o.shape[-1] :].sigmoid())

    def _rounded_steps(self, u: RoundedNumbers) -> rounding.RoundedSteps:
        H, keys = self.config.heads, self.convolved["k"]
        weight = self._weight(self.convolved | self._rates(self.config))
        x = rounding.projected(u, weight)
        kv, gate = rounding.with_silu(x[..., : self.channels]), x[..., self.channels :].sigmoid()
        z, b = u, self._rates(self.config)["b"]
        for part in self.f_proj:
            z = rounding.projected(z, part.get_parameter("weight"))
        biased = (z - RoundedNumbers.exact(-self.dt_bias, u.kind)).unflatten((H, -1))
        decay = rounding.decays(biased, self.A_log.detach().double().exp()[:, None])
        erase = gate[..., :b].unflatten((H, -1)).scaled(self._scale)
        write = erase if gate.mid.shape[-1] == b else gate[..., b:].unflatten((H, -1))
        k, v = kv[..., :keys].unflatten((H, -1)), kv[..., keys:].unflatten((H, -1))
        k = rounding.with_unit_norm(k)
        parts = decay, erase * decay * k, k, write * v
        return rounding.RoundedSteps(*(rounding.shaped(lambda y: y.unsqueeze(-3), part) for part in parts))


class GDN2Layer(KDALayer):
    """A KDA layer with one rate of erasing per key and one rate of writing per value."""

    Config = GDN2Config

    @staticmethod
    def _rates(config: KDAConfig) -> dict[str, int]:
        return {"b": config.heads * config.block, "w": config.heads * config.values}
