"""RWKV-4 (Peng et al. 2023) and the time mixing of RWKV-7 (Peng et al. 2025).

A layer of RWKV-4 is one block of the published model, with its LayerNorms and its residual connections: time mixing by
a decaying average, channel mixing by a gated squared ReLU. Models of this layer therefore chain the layers and
normalise only before the read-out. The average is

    y_t = (Σ_{i<t} e^{(t−1−i)w + k_i} v_i + e^{u + k_t} v_t) / (the same sum with v = 1).

Numerator and denominator are states of a diagonal linear recurrence with the input-independent rates e^w. They are
stored as p e^o and q e^o, where o is the largest exponent so far, so that no exponential overflows. `reference`
computes letter by letter; `scanned` computes all exponents o first, and then the recurrences of p and q by a scan.

RWKV-7 is S ← S (diag(w) − κ̂ (a ⊙ κ̂)ᵀ) + v k̃ᵀ, from this letter and the last. The transition removes along κ̂ and
adds along a ⊙ κ̂, two vectors per letter, so that each letter takes two steps of the scan. Parameters have the names of
RWKV7Attention in flash-linear-attention. Each layer is built as the first of a model: it does not mix its values with
those of a first layer. With reads="state" letters are not mixed with their predecessors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, group_norm, normalize

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import scans
from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.base import Layer, LayerConfig, check_positive, check_width
from fsa2lrnn.nn.layers.channel_layer import check_stream
from fsa2lrnn.nn.layers.matrix_layer import MatrixConfig, MatrixLayer, RankOneSteps
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.scans import check_method, scan

NOTHING = -1e38  # the exponent of a sum of no terms; −∞ would make ∞ − ∞
METHODS = tuple(scans.METHODS)


def wkv(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
    """Return the averages and the last state: w < 0, u (C,), k, v (B, T, C), state (B, 3, C) -> (B, T, C), (B, 3, C).

    A state holds p, q and o; the initial state is 0, 0 and `NOTHING`. `method` is "sequential" for `reference`,
    another one of `scan`, or "auto" or "letters" for the fastest one.

    Raises:
        UnsupportedFormat: for an unknown method.

    >>> k, v, one = torch.zeros(1, 3, 1), torch.tensor([1.0, 3.0, 5.0]).view(1, 3, 1), torch.zeros(1)
    >>> wkv(one, one, k, v, torch.tensor([0, 0, NOTHING]).view(1, 3, 1))[0].flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    method = "auto" if method == "letters" else method
    check_method(method, {**scans.METHODS, **scans.GPU_METHODS})
    if not k.shape[1]:
        return v, state
    return reference(w, u, k, v, state) if method == "sequential" else scanned(w, u, k, v, state, method)


def reference(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the averages of `wkv` letter by letter, with autograd, for T > 0."""
    averages = []
    for k_t, v_t in zip(k.unbind(1), v.unbind(1), strict=True):
        y, state = step(w, u, k_t, v_t, state)
        averages.append(y)
    return torch.stack(averages, dim=1), state


def step(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the average and the state after one letter: k and v (B, C), state (B, 3, C) -> (B, C), (B, 3, C)."""
    p, q, o = state.unbind(1)
    # The largest exponent is subtracted from all, so that the larger of the two exponentials is 1.
    n = torch.maximum(o, u + k)
    before, now = (o - n).exp(), (u + k - n).exp()
    y = (before * p + now * v) / (before * q + now)
    n = torch.maximum(o + w, k)
    before, now = (o + w - n).exp(), (k - n).exp()
    return y, torch.stack([before * p + now * v, before * q + now, n], dim=1)


def scanned(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor, method: str) -> tuple[Tensor, Tensor]:
    """Compute the averages of `wkv` by one scan of p and q, for T > 0.

    The backward pass treats exponents as constants, because all results depend on the products p e^o and q e^o only.
    """
    p, q, o = state.unbind(1)
    with torch.no_grad():
        # max_{i ≤ t} (k_i + (t − i)w) is t·w plus the largest k_i − i·w so far; rounding it changes no result.
        elapsed = torch.arange(k.shape[1] + 1, device=k.device).unsqueeze(-1) * w
        tops = elapsed + torch.cat([o.unsqueeze(1), k - elapsed[1:]], 1).cummax(1).values  # (B, T + 1, C)
        n = torch.maximum(tops[:, :-1], u + k)
    # The exponents of the stored sums before and after each letter; the decay of p and q is relative to them.
    before, after = torch.cat([o.unsqueeze(1), tops[:, 1:-1]], 1), tops[:, 1:]
    decay, new = (before + w - after).exp(), (k - after).exp()
    start = torch.cat([p, q], -1).unsqueeze(-1)
    # p and q are channels of blocks of size 1 with the same decays.
    A = torch.cat([decay, decay], -1)[..., None, None]
    x = scan(A, torch.cat([new * v, new], -1).unsqueeze(-1), start, method)
    earlier = torch.cat([start.unsqueeze(1), x[:, :-1]], 1)
    (P, Q), (p, q) = earlier.squeeze(-1).chunk(2, -1), x[:, -1].squeeze(-1).chunk(2, -1)
    # The output reads the sums before the letter, and the letter itself with the weight e^{u + k}.
    share, now = (before - n).exp(), (u + k - n).exp()
    return (share * P + now * v) / (share * Q + now), torch.stack([p, q, tops[:, -1]], 1)


_TINY = 1e-4  # the initial gain of the embedding; the LayerNorm after it restores the size


@dataclass(frozen=True)
class RWKV4Config(LayerConfig):
    """The configuration of a block of RWKV-4 with `width` channels, block number `place` (from 0) of `depth`.

    The place determines the initial weights; block 0 also has a LayerNorm of the embedding. Raises `UnsupportedFormat`
    for values out of range.
    """

    width: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is
    place: int = 0
    depth: int = 1

    def __post_init__(self) -> None:
        check_positive(self, "width")
        check_width(self.entries)
        if not 0 <= self.place < self.depth:
            raise UnsupportedFormat(f"place = {self.place}: blocks are numbered from 0, and there are {self.depth}")

    @property
    def entries(self) -> int:
        """The numbers per token in the widest intermediate result: 5C, of a state."""
        return 5 * self.width

    def at(self, place: int, depth: int) -> Self:
        """Return this configuration for block number `place` of `depth`."""
        return replace(self, place=place, depth=depth)


class RWKV4Layer(Layer):
    """The layer x += TimeMix(LN1 x), x += ChannelMix(LN2 x); in the first block x = LN0 x comes before.

    Both mix each input with the previous one (`time_mix_*`). The state (B, 5, C) holds p, q and o of `wkv`, then the
    last inputs of the two mixings. The decay rates e^w, w = −exp(`time_decay`), do not depend on the input.
    """

    Config = RWKV4Config
    unproved: ClassVar[str | None] = "whose exponentials no verifier models"
    methods: ClassVar[tuple[str, ...]] = METHODS

    def __init__(self, width_in: int, config: RWKV4Config) -> None:
        super().__init__()
        check_stream(width_in, config.width, type(self).__name__)
        C, last = config.width, config.depth - 1
        a, b = config.place / last if last else 0.0, 1 - config.place / config.depth
        self.ln0 = nn.LayerNorm(C) if config.place == 0 else None
        self.ln1, self.ln2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.att, self.ffn = TimeMix(C, a, b), ChannelMix(C, b)

    @classmethod
    def embedding(cls, config: RWKV4Config, n_letters: int, dim: int) -> nn.Module:
        """Return an embedding with small orthogonal initial weights."""
        made = nn.Embedding(n_letters, dim)
        nn.init.orthogonal_(made.weight, math.sqrt(max(n_letters, dim)) * _TINY)
        return made

    @classmethod
    def readout(cls, config: RWKV4Config, width: int, hidden: int, n_outputs: int) -> nn.Module:
        """Return a linear map without bias and without hidden units."""
        return _matrix(n_outputs, width, 0.5)

    def initial_state(self, batch: int) -> Tensor:
        """Return the state of the empty word, with zeros as the input before the first: (B, 5, C)."""
        state = self.ln1.weight.new_zeros(batch, 5, len(self.ln1.weight))
        state[:, 2].fill_(NOTHING)
        return state

    def emit(self, state: Tensor) -> Tensor:
        """Return zeros (B, C), because a block adds its output to the input, which a state does not contain."""
        return torch.zeros_like(state[:, 0])

    def forward(self, u: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return the outputs and the last state: u (B, T, C), state (B, 5, C) -> (B, T, C), (B, 5, C).

        `method` is one of `wkv`.
        """
        if not u.shape[1]:
            return u, state
        x = u if self.ln0 is None else self.ln0(u)
        read = self.ln1(x)
        mixed, average = self.att(read, shifted(read, state[:, 3]), state[:, :3], method)
        x = x + mixed
        read_next = self.ln2(x)
        after = torch.cat([average, read[:, -1:], read_next[:, -1:]], dim=1)
        return x + self.ffn(read_next, shifted(read_next, state[:, 4])), after


def shifted(u: Tensor, before: Tensor) -> Tensor:
    """Return the inputs shifted by one position, `before` first: u (B, T, C), before (B, C) -> (B, T, C)."""
    return torch.cat([before.unsqueeze(1), u[:, :-1]], dim=1)


class TimeMix(nn.Module):
    """The time mixing W_o (σ(r) ⊙ wkv(k, v)) of C channels; `a` and `b`, from the place, set the initial weights."""

    def __init__(self, C: int, a: float, b: float) -> None:
        super().__init__()
        fraction, i = torch.arange(C) / C, torch.arange(C)
        self.time_decay = nn.Parameter(8 * torch.linspace(0, 1, C) ** (0.7 + 1.3 * a) - 5)
        self.time_first = nn.Parameter(math.log(0.3) + ((i + 1) % 3 - 1) / 2)
        self.time_mix_k = nn.Parameter(fraction**b)
        self.time_mix_v = nn.Parameter(fraction**b + 0.3 * a)
        self.time_mix_r = nn.Parameter(fraction ** (b / 2))
        self.key, self.value, self.receptance, self.output = (_matrix(C, C, gain) for gain in (0, 1, 0, 0))

    def forward(self, u: Tensor, earlier: Tensor, state: Tensor, method: str) -> tuple[Tensor, Tensor]:
        """Return the outputs and the last state: u, earlier (B, T, C), state (B, 3, C) -> (B, T, C), (B, 3, C)."""
        k = self.key(torch.lerp(earlier, u, self.time_mix_k))
        v = self.value(torch.lerp(earlier, u, self.time_mix_v))
        r = self.receptance(torch.lerp(earlier, u, self.time_mix_r))
        y, state = wkv(-self.time_decay.exp(), self.time_first, k, v, state, method)
        return self.output(torch.sigmoid(r) * y), state


class ChannelMix(nn.Module):
    """The channel mixing σ(W_r x) ⊙ W_v ReLU(W_k x)² of C channels, with 4C hidden units; `b` as in `TimeMix`."""

    def __init__(self, C: int, b: float) -> None:
        super().__init__()
        fraction = torch.arange(C) / C
        self.time_mix_k, self.time_mix_r = nn.Parameter(fraction**b), nn.Parameter(fraction**b)
        self.key, self.receptance, self.value = _matrix(4 * C, C, 1), _matrix(C, C, 0), _matrix(C, 4 * C, 0)

    def forward(self, u: Tensor, earlier: Tensor) -> Tensor:
        """Return the mixed channels: inputs u and previous inputs `earlier` (B, T, C) -> (B, T, C)."""
        k = torch.relu(self.key(torch.lerp(earlier, u, self.time_mix_k)))
        return torch.sigmoid(self.receptance(torch.lerp(earlier, u, self.time_mix_r))) * self.value(k * k)


def _matrix(rows: int, columns: int, gain: float) -> nn.Linear:
    """Return a linear map without bias, with the weight 0 for gain 0 and an orthogonal one otherwise.

    With more rows than columns the gain grows by √(rows/columns), so that the entries of the output keep their size.
    """
    made = nn.Linear(columns, rows, bias=False)
    if gain:
        nn.init.orthogonal_(made.weight, gain * max(1.0, math.sqrt(rows / columns)))
    else:
        nn.init.zeros_(made.weight)
    return made


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
        # Two steps of rank one: the first has the transition and writes nothing, the second has the identity and
        # writes v along k̃.
        none = torch.zeros_like(k)
        pairs = (g, none), (-removed, none), (removed * a, k), (none, v)
        g, a, k, v = (torch.stack(pair, dim=-3) for pair in pairs)
        return RankOneSteps(g, a, k, v, None)

    def _rounded_steps(self, u: RoundedNumbers) -> rounding.RoundedSteps:
        """Return bounds of the two steps of a letter: u (…, d) -> four parts (…, 2, H, b).

        The first step decays by w, removes along κ̂ and adds along a ⊙ κ̂, and writes nothing. The second writes v along
        k̃; its decay is 1, and e = 0.
        """

        def of_heads(x: RoundedNumbers) -> RoundedNumbers:
            return x.unflatten((self.config.heads, -1))

        def scaled(x: RoundedNumbers, factors: Tensor) -> RoundedNumbers:
            return x * RoundedNumbers.exact(factors, u.kind)

        g = self.w_lora.rounded(u, torch.tanh).sigmoid().scaled(_SLOWEST)
        a, k = self.a_lora.rounded(u).sigmoid(), rounding.projected(u, self.k_proj.weight)
        one = RoundedNumbers.exact(torch.ones_like(self.k_a), u.kind)
        removed = of_heads(scaled(k, self.k_k)).normalised()
        # 1 + (a − 1) k_a in terms of differences, because `RoundedNumbers` has no sum.
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
