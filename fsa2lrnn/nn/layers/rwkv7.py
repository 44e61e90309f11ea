"""RWKV-7 (Peng et al. 2025), the time mixing: S ← S (diag(w) − κ̂ (a ⊙ κ̂)ᵀ) + v k̃ᵀ, from this letter and the last.

The transition removes along κ̂ and adds along a ⊙ κ̂, two vectors per letter, so that each letter takes two steps of
the scan. Parameters have the names of RWKV7Attention in flash-linear-attention. Each layer is built as the first of a
model: it does not mix its values with those of a first layer. With reads="state" letters are not mixed with their
predecessors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, group_norm, normalize

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.matrix_layer import MatrixConfig, MatrixLayer
from fsa2lrnn.nn.layers.matrix_scan import RankOneSteps
from fsa2lrnn.nn.rounding import RoundedNumbers

_SLOWEST = -0.6065306597126334  # −exp(−1/2): the logarithm of the fastest decay
_MIXED = ("r", "w", "k", "v", "a", "g")


@dataclass(frozen=True)
class RWKV7Config(MatrixConfig):
    """A configuration with `heads` states of `block` columns and rows, without a convolution.

    `rank` is the rank of the low-rank gates, `gate_rank` that of the output gate, 0 for the same.
    """

    conv: int = 0
    rank: int = 32
    gate_rank: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.conv or self.expand_v != 1:
            raise UnsupportedFormat(f"conv = {self.conv}, expand_v = {self.expand_v}: RWKV-7 has 0 and 1")
        for name, least in (("rank", 1), ("gate_rank", 0)):
            if type(value := getattr(self, name)) is not int or value < least:
                raise UnsupportedFormat(f"{name} = {value!r}: a low-rank gate needs a positive whole number")


class LowRank(nn.Module):
    """A map W₂ f(W₁ x) + b with the parameter names of fla's LoRA."""

    def __init__(self, width_in: int, width: int, rank: int, activation: nn.Module, bias: bool = True) -> None:
        super().__init__()
        self.lora = nn.Sequential(nn.Linear(width_in, rank, bias=False), activation, nn.Linear(rank, width, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        """Return the gate's values: (…, d) -> (…, n)."""
        return self.lora(x)

    def rounded(self, x: RoundedNumbers, f: Callable[[Tensor], Tensor] | None = None) -> RoundedNumbers:
        """Return bounds of the gate's values, with f the identity or a function that `rounding.tame` bounds."""
        x = rounding.projected(x, self.lora.get_parameter("0.weight"))
        x = x if f is None else rounding.tame(f, x)
        return x.linear(self.lora.get_parameter("2.weight"), self.lora.get_parameter("2.bias"))


class RWKV7Layer(MatrixLayer):
    """The layer o_proj((norm(S r) + (Σ r ⊙ r_k ⊙ k̃) v) ⊙ g_lora u); the state holds the last input, then S."""

    Config = RWKV7Config

    def __init__(self, width_in: int, config: RWKV7Config) -> None:
        super().__init__(config, {})
        C, d = config.heads * config.block, width_in
        ramp = torch.arange(d) / d
        self.width_in = width_in
        mixed = [name for name in _MIXED if not config.is_state]
        for name, power in zip(_MIXED, (0.2, 0.9, 0.7, 0.7, 0.9, 0.2), strict=True):
            if name in mixed:
                self.register_parameter(f"x_{name}", nn.Parameter((1 - ramp**power).view(1, 1, d)))
        self.k_k, self.k_a = nn.Parameter(torch.full((C,), 0.71)), nn.Parameter(torch.full((C,), 1.02))
        self.k_proj, self.v_proj = (nn.Linear(d, C, bias=False) for _ in range(2))
        self.w_lora = LowRank(d, C, config.rank, nn.Tanh())
        self.a_lora = LowRank(d, C, config.rank, nn.Identity())
        nn.init.uniform_(self.w_lora.get_parameter("lora.2.bias"), -6, 1)
        if not config.is_state:
            self.r_k = nn.Parameter(torch.full((config.heads, config.block), -0.04))
            self.r_proj, self.o_proj = nn.Linear(d, C, bias=False), nn.Linear(C, config.width, bias=False)
            self.g_lora = LowRank(d, C, config.gate_rank or config.rank, nn.Sigmoid(), bias=False)
            self.g_norm = nn.GroupNorm(config.heads, C, eps=config.block * 1e-5)

    @property
    def memory(self) -> int:
        """The numbers before S: those of the last input."""
        return 0 if self.config.is_state else self.width_in

    def _read(self, u: Tensor, index: Tensor | None, memory: Tensor) -> tuple[RankOneSteps, Tensor, Tensor]:
        u = u if index is None else embedding(index, u)
        before = torch.cat([memory.unsqueeze(1), u[:, :-1]], dim=1) - u
        r, w, k, v, a, g = (torch.addcmul(u, before, self.get_parameter(f"x_{name}")) for name in _MIXED)
        steps = self._steps(w, k, v, a)._replace(q=self.r_proj(r).unflatten(-1, (self.config.heads, -1)))
        return steps, self.g_lora(g), u[:, -1]

    def _letter_steps(self, u: Tensor) -> RankOneSteps:
        return self._steps(u, u, u, u)

    def _steps(self, w: Tensor, k: Tensor, v: Tensor, a: Tensor) -> RankOneSteps:
        """Return two steps per letter: decay and S a ↦ b, then v along k̃."""
        heads = self.config.heads
        g, k, v, a = _SLOWEST * self.w_lora(w).sigmoid(), self.k_proj(k), self.v_proj(v), self.a_lora(a).sigmoid()
        removed = k * self.k_k
        k = k * (1 + (a - 1) * self.k_a)
        g, k, v, a, removed = (x.unflatten(-1, (heads, -1)) for x in (g, k, v, a, removed))
        removed = normalize(removed, dim=-1)
        none = torch.zeros_like(k)
        pairs = (g, none), (-removed, none), (removed * a, k), (none, v)
        g, a, k, v = (torch.stack(pair, dim=-3) for pair in pairs)
        return RankOneSteps(g, a, k, v, None)

    def _rounded_steps(self, u: RoundedNumbers) -> rounding.RoundedSteps:
        def of_heads(x: RoundedNumbers) -> RoundedNumbers:
            return x.unflatten((self.config.heads, -1))

        def scaled(x: RoundedNumbers, factors: Tensor) -> RoundedNumbers:
            return x * RoundedNumbers.exact(factors, u.kind)

        g = self.w_lora.rounded(u, torch.tanh).sigmoid().scaled(_SLOWEST)
        a, k = self.a_lora.rounded(u).sigmoid(), rounding.projected(u, self.k_proj.weight)
        one = RoundedNumbers.exact(torch.ones_like(self.k_a), u.kind)
        removed = of_heads(scaled(k, self.k_k)).normalised()
        k, v = k * (one - scaled(one - a, self.k_a)), rounding.projected(u, self.v_proj.weight)
        decay, k, v, a = of_heads(rounding.tame(torch.exp, g)), of_heads(k), of_heads(v), of_heads(a)
        none = k.where(torch.zeros((), dtype=torch.bool))
        same = RoundedNumbers.exact(torch.ones_like(k.mid), u.kind)
        pairs = (decay, same), (removed, none), (removed * a, k), (none, v)
        return rounding.RoundedSteps(*(rounding.stacked(partial(torch.stack, dim=-3), *pair) for pair in pairs))

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the projection of the gated outputs, normed per head and corrected by this letter's value."""
        assert steps.q is not None
        k, v = steps.k[..., 1, :, :], steps.v[..., 1, :, :]
        here = ((steps.q * k * self.r_k).sum(-1, keepdim=True) * v).flatten(-2)
        flat = o.flatten(0, 1).flatten(1)
        o = group_norm(flat, self.config.heads, self.g_norm.weight, self.g_norm.bias, self.g_norm.eps)
        return self.o_proj((o.view_as(here) + here) * rest)
