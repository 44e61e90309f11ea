"""Delta rules: Gated DeltaNet, (Gated) DeltaProduct, Kimi Delta Attention (KDA) and Gated DeltaNet 2 (GDN-2).

The first three take n factors per letter, with or without decay: S ← S exp(g), then n times S ← S (I − β_j k_j k_jᵀ) +
β_j v_j k_jᵀ, with unit keys, β = σ(·) or, for negative eigenvalues, 2σ(·), and g = −exp(A_log)·softplus(a + dt_bias),
one number per head. Parameters have the names of GatedDeltaNet and GatedDeltaProduct in flash-linear-attention.

In KDA and GDN-2 each column of a state has its own decay: S ← S diag(exp g), then S ← S (I − (b ⊙ k) kᵀ) + (w ⊙ v) kᵀ.
In KDA b and w are one number β = σ(·) per head, in GDN-2 they are one number per key and one per value. g =
−exp(A_log)·softplus(f_proj u + dt_bias). Parameters have the names of KimiDeltaAttention and GatedDeltaNet2 in flash-
linear-attention.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, logsigmoid, silu

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.base import Hint, LayerConfig
from fsa2lrnn.nn.layers.matrix_layer import MatrixConfig, MatrixLayer, RankOneSteps, drawn_steps, normed, unit
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers


@dataclass(frozen=True)
class DeltaRuleConfig(MatrixConfig):
    """The configuration shared by the three layers.

    Args:
        neg_eigval: whether β reaches 2, so that a factor has an eigenvalue in (−1, 1) (`allow_neg_eigval`).
        gate: whether SiLU(g_proj u) multiplies the normed output.
    """

    neg_eigval: bool = False
    gate: bool = True

    @property
    def factors(self) -> int:
        """The number n of Householder factors per letter."""
        return 1

    @property
    def has_decay(self) -> bool:
        """Whether states decay."""
        return True


@dataclass(frozen=True)
class GatedDeltaNetConfig(DeltaRuleConfig):
    """The configuration of Gated DeltaNet (Yang et al. 2025): one factor per letter, with decay.

    By default there are two values per key.
    """

    expand_v: float = 2.0


@dataclass(frozen=True)
class _ProductConfig(DeltaRuleConfig):
    factors: int = 2  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is
    neg_eigval: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.factors) is not int or self.factors < 1:
            raise UnsupportedFormat(f"factors = {self.factors!r}: a product has 1 factor or more, a whole number")


@dataclass(frozen=True)
class GatedDeltaProductConfig(_ProductConfig):
    """The configuration of Gated DeltaProduct (Siems et al. 2025): `factors` per letter, with decay."""


@dataclass(frozen=True)
class DeltaProductConfig(_ProductConfig):
    """The configuration of DeltaProduct (Siems et al. 2025): `factors` per letter, without decay."""

    @property
    def has_decay(self) -> bool:
        """False, because the state is erased by factors only."""
        return False


class DeltaRuleLayer(MatrixLayer):
    """The layer o_proj(norm(S q) ⊙ SiLU(g_proj u)), norm with a gain per value.

    q, k and v are convolved and pass a SiLU.
    """

    def __init__(self, width_in: int, config: DeltaRuleConfig) -> None:
        n, H, K, V = config.factors, config.heads, config.block, config.values
        reads = {} if config.is_state else {"q": H * K}
        super().__init__(config, reads | {"k": n * H * K, "v": n * H * V})
        for name, size in self.convolved.items():
            self.add_module(f"{name}_proj", nn.Linear(width_in, size, bias=False))
        self.b_proj = nn.Linear(width_in, n * H, bias=False)
        if config.has_decay:
            self.a_proj = nn.Linear(width_in, H, bias=False)
            self.A_log = nn.Parameter(torch.empty(H).uniform_(1e-4, 16).log())
            self.dt_bias = nn.Parameter(drawn_steps(H))
        if not config.is_state:
            if config.gate:
                self.g_proj = nn.Linear(width_in, H * V, bias=False)
            self.o_norm = nn.RMSNorm(V, eps=1e-5)
            self.o_proj = nn.Linear(H * V, config.width, bias=False)

    @property
    def family(self) -> str | None:
        """The family of Householder products, if nothing decays and each factor depends on one letter."""
        config = self.config
        return None if config.has_decay or config.conv else f"householder({config.factors})"

    def parameter_hints(self) -> dict[str, Hint]:
        """Return no weight decay for A_log and dt_bias, as in the published code."""
        return {name: Hint(decay=0.0) for name in ("A_log", "dt_bias")} if self.config.has_decay else {}

    def _weight(self) -> Tensor:
        names = [*self.convolved, "b", "a", "g"]
        parts = [getattr(self, f"{name}_proj").weight for name in names if hasattr(self, f"{name}_proj")]
        return torch.cat(parts)

    def projected(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return q, k and v (…, C), and rates, decays and gate (…, R)."""
        x = linear(u, self._weight())
        return x[..., : self.channels], x[..., self.channels :]

    def _parts(self, x: Any, rest: Any) -> tuple[Any, Any, Any, Any]:
        """Return k (…, n, H, K), v (…, n, H, V), rates (…, n, H, 1) and decays (…, H), from numbers or their bounds."""
        config = self.config
        n, H, size = config.factors, config.heads, config.factors * config.heads * config.block
        first = self.convolved.get("q", 0)
        k, v = x[..., first : first + size], x[..., first + size :]
        b, a = rest[..., : n * H], rest[..., n * H : n * H + H]
        return _cut(k, n, H, -1), _cut(v, n, H, -1), _cut(b, n, H, 1), a

    def steps(self, x: Tensor, rest: Tensor) -> RankOneSteps:
        """Return the steps: a = −β exp(g) k, v = β times the value; the decay comes before the first factor."""
        config = self.config
        k, v, rate, decay = self._parts(x, rest)
        k, rate = unit(k), rate.sigmoid() * (2 if config.neg_eigval else 1)
        g = torch.zeros_like(rate)
        if config.has_decay:
            # −softplus(y) = logsigmoid(−y): g is never positive, and exp(g) is a decay.
            first = (self.A_log.exp() * logsigmoid(-(decay + self.dt_bias))).unsqueeze(-2)
            # The decay belongs to the first of the n factors of a letter; the logarithms of the others' decays are 0.
            g = torch.cat([first.unsqueeze(-1), g[..., 1:, :, :]], dim=-3)
        q = None
        if "q" in self.convolved:
            # Queries are scaled by 1/√K, as in softmax attention and in the published code.
            q = unit(x[..., : self.convolved["q"]].unflatten(-1, (config.heads, -1))) * config.block**-0.5
        return RankOneSteps(g, -(rate * g.exp()) * k, k, rate * v, q)

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the projection of the normed, gated outputs."""
        o = normed(o, self.o_norm.weight).flatten(-2)
        return self.o_proj(o * silu(rest[..., -o.shape[-1] :]) if self.config.gate else o)

    def _rounded_steps(self, u: RoundedNumbers) -> rounding.RoundedSteps:
        """Return bounds of the n steps of a letter: u (…, d) -> decay (…, n, H, 1), k (…, n, H, K), v (…, n, H, V).

        The decay belongs to the first of the n factors; the others have the decay 1. The factor j is decay·I − k eᵀ
        with e = β·decay·k, and it writes β v along k.
        """
        config, weight = self.config, self._weight()
        x = rounding.projected(u, weight)
        k, v, b, a = self._parts(rounding.with_silu(x[..., : self.channels]), x[..., self.channels :])
        rate = b.sigmoid().scaled(2 if config.neg_eigval else 1)
        decay = RoundedNumbers.exact(torch.ones_like(rate.mid), u.kind)
        if config.has_decay:
            # `RoundedNumbers` has no sum, so the bias is added by subtracting its negative, which is exact.
            biased = a - RoundedNumbers.exact(-self.dt_bias, u.kind)
            # (…, H) becomes (…, 1, H, 1): the axes of the factors and of the keys.
            first = rounding.decays(biased, self.A_log.detach().double().exp())[..., None, :, None]
            later = decay[..., 1:, :, :]
            decay = rounding.stacked(partial(torch.cat, dim=-3), first, later)
        k = rounding.with_unit_norm(k)
        return rounding.RoundedSteps(decay, rate * decay * k, k, rate * v)


def _cut(x: Any, *sizes: int) -> Any:
    return rounding.shaped(lambda y: y.unflatten(-1, sizes), x) if isinstance(x, RoundedNumbers) else x.unflatten(
        -1, sizes
    )  # fmt: skip


class GatedDeltaNetLayer(DeltaRuleLayer):
    """The layer of Gated DeltaNet; β = 2σ with `neg_eigval`."""

    Config = GatedDeltaNetConfig


class GatedDeltaProductLayer(DeltaRuleLayer):
    """The layer of Gated DeltaProduct with n = `factors`."""

    Config = GatedDeltaProductConfig


class DeltaProductLayer(DeltaRuleLayer):
    """The layer of DeltaProduct with n = `factors`; with one factor, DeltaNet."""

    Config = DeltaProductConfig


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
        # GDN-2 has a rate of writing per value; in KDA one number per head erases and writes.
        write = of_heads(gate[..., rates["b"] :]) if "w" in rates else erase
        g = self.A_log.exp()[:, None] * logsigmoid(-of_heads(rest[..., :n_decays] + self.dt_bias))
        q, k, v = map(of_heads, x.split([self.convolved.get("q", 0), self.convolved["k"], self.convolved["v"]], -1))
        k = unit(k)
        q = unit(q) * config.block**-0.5 if "q" in self.convolved else None
        parts = g, -(erase * g.exp()) * k, k, write * v
        # One step per letter: the axis of factors has length 1.
        g, a, k, v = (part.unsqueeze(-3) for part in parts)
        return RankOneSteps(g, a, k, v, q)

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the projection of the normed, gated outputs."""
        o = normed(o, self.o_norm.weight).flatten(-2)
        return self.o_proj(o * rest[..., -o.shape[-1] :].sigmoid())

    def _rounded_steps(self, u: RoundedNumbers) -> rounding.RoundedSteps:
        """Return bounds of the one step of a letter: u (…, d) -> decay and keys (…, 1, H, K), values (…, 1, H, V).

        Each key has its own decay; b erases and w writes, one number β for both in KDA. The low-rank projection of the
        decay is bounded factor by factor.
        """
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
