"""RWKV-4 (Peng et al. 2023): time mixing by a decaying average, channel mixing by a gated squared ReLU.

A layer is one block of the published model, with its LayerNorms and its residual connections. Models of this layer
therefore chain the layers and normalise only before the read-out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers.base import Layer, LayerConfig, check_width
from fsa2lrnn.nn.layers.channels import check_stream
from fsa2lrnn.nn.layers.kernels.wkv import METHODS, NOTHING, wkv

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
        if self.width < 1:
            raise UnsupportedFormat(f"width = {self.width}: a layer needs at least one channel")
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
