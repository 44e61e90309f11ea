"""minGRU (Feng et al. 2024), and sLSTM (Beck et al. 2024) as the nonlinear reference.

minGRU is x_k = (1 − z) x_{k−1} + z g(h), z = σ(·) and h linear in the input, g > 0: g(h) is h + 1/2 for h ≥ 0 and σ(h)
below, as in the version of the paper that scans logarithms. The parameter has the name of minGRU in lucidrains' minGRU-
pytorch.

sLSTM has exponential gates that read the layer's own outputs, so that it is not a linear recurrence:
c ← f c + i tanh(z), n ← f n + i, y = o c / n with i = exp(·), f = σ(·), o = σ(·), all scaled by exp(−m) so that nothing
overflows. Gates read the input and, by a matrix per head, the previous y. Parameters have the names of sLSTMLayer in
NX-AI/xlstm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, layer_norm, logsigmoid, silu

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers.base import Layer, LayerConfig, check_positive, check_width
from fsa2lrnn.nn.layers.block import scan_states
from fsa2lrnn.nn.layers.matrix_layer import convolve
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.scans import METHODS


@dataclass(frozen=True)
class MinGRUConfig(LayerConfig):
    """The configuration of a minGRU of `width` numbers."""

    width: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is

    def __post_init__(self) -> None:
        check_positive(self, "width")
        check_width(self.width)


class MinGRULayer(Layer):
    """A minGRU layer, whose output is its state (B, H, 1), zero at the start."""

    Config = MinGRUConfig
    takes_index: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = tuple(METHODS)

    def __init__(self, width_in: int, config: MinGRUConfig) -> None:
        super().__init__()
        self.width = config.width
        self.to_hidden_and_gate = nn.Linear(width_in, 2 * config.width, bias=False)

    @property
    def has_tables(self) -> bool:
        """True, with A = 1 − z and v = z g(h)."""
        return True

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The block sizes, all 1."""
        return (1,) * self.width

    @property
    def family(self) -> str | None:
        """The family of diagonal layers with entries in [0, 1]."""
        return "diagonal[0,1]"

    def initial_state(self, batch: int) -> Tensor:
        """Return zeros: (B, H, 1)."""
        return self.to_hidden_and_gate.weight.new_zeros(batch, self.width, 1)

    def emit(self, state: Tensor) -> Tensor:
        """Return the state: (B, H, 1) -> (B, H)."""
        return state.flatten(1)

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return 1 − z and z g(h): (…, d) -> (…, H, 1, 1), (…, H, 1)."""
        h, gate = self.to_hidden_and_gate(u).chunk(2, dim=-1)
        v = gate.sigmoid() * torch.where(h >= 0, h + 0.5, h.sigmoid())
        # 1 − σ(x) = σ(−x), which does not cancel for large x.
        return (-gate).sigmoid()[..., None, None], v.unsqueeze(-1)

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return bounds of the tables; g changes by at most its argument, and its slope jumps at 0."""
        weight = self.to_hidden_and_gate.weight
        x = u.linear(weight, weight.new_zeros(len(weight)))
        h, gate = x[..., : self.width], x[..., self.width :]
        g = h.of(torch.where(h.mid >= 0, h.mid + 0.5, h.mid.sigmoid()), h.off + 64 * h.kind.u * (h.size + 1))
        A = gate.scaled(-1).sigmoid()
        return A[..., None, None], (gate.sigmoid() * g)[..., None]

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return all states and the last state: u (B, T, d), or rows (N, d) with index (B, T)."""
        return scan_states(self, u, state, method, index)


_GATES = ("fgate", "igate", "zgate", "ogate")  # in the order of the cell: its input gate reads fgate, as in their code


@dataclass(frozen=True)
class SLSTMConfig(LayerConfig):
    """A configuration with `heads` heads of `block` cells.

    `conv` is the number of letters that a convolution before the first two gates reads, 0 for none.
    """

    heads: int
    block: int
    conv: int = 4

    def __post_init__(self) -> None:
        check_positive(self, "heads", "block")
        if type(self.conv) is not int or self.conv < 0:
            raise UnsupportedFormat(f"conv = {self.conv!r}: a number of letters, or 0")
        check_width(self.entries)

    @property
    def width(self) -> int:
        """The number of cells."""
        return self.heads * self.block

    @property
    def entries(self) -> int:
        """The largest number of entries per token: four gates, or four states and the memory of the convolution."""
        return self.width * (4 + max(0, self.conv - 1))


class SLSTMLayer(Layer):
    """An sLSTM layer whose output is the norm of y per head.

    The state is (B, 4 + W − 1, C): y, c, n and m, then the last inputs.
    """

    Config = SLSTMConfig
    takes_index: ClassVar[bool] = True
    unproved: ClassVar[str | None] = "which is not a linear recurrence, and whose exponentials no verifier models"

    def __init__(self, width_in: int, config: SLSTMConfig) -> None:
        super().__init__()
        self.config = config
        H, size, C = config.heads, config.block, config.width
        if width_in != C:
            raise UnsupportedFormat(f"sLSTM of width {C} reads {width_in} numbers: set embedding_dim = {C}")
        for name in _GATES:
            self.add_module(name, HeadwiseLinear(H, size))
        if config.conv:
            self.conv1d = CausalConv(C, config.conv)
        self.recurrent_kernel = nn.Parameter(torch.zeros(H, size, 4, size))
        bias = torch.zeros(H, 4, size)
        bias[:, 1] = 5 - 12 * (torch.arange(size) / max(1, size - 1)) ** 0.3
        self.bias = nn.Parameter(bias)
        self.norm_weight = nn.Parameter(torch.zeros(C))  # the gain less 1

    def initial_state(self, batch: int) -> Tensor:
        """Return zeros: (B, 4 + W − 1, C)."""
        return self.bias.new_zeros(batch, 4 + max(0, self.config.conv - 1), self.config.width)

    def emit(self, state: Tensor) -> Tensor:
        """Return the norm of y: (B, …, C) -> (B, C)."""
        return self._normed(state[:, 0])

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs and the last state, step by step: u (B, T, C), or rows (N, C) with index (B, T)."""
        config = self.config
        length = (u if index is None else index).shape[1]
        if not length:
            return u.new_zeros(len(state), 0, config.width), state
        later = torch.cat([self.get_submodule(name)(u) for name in _GATES[2:]], dim=-1)
        u, later = (x if index is None else embedding(index, x) for x in (u, later))
        cells, memory = state[:, :4], state[:, 4:]
        if config.conv:
            read = torch.cat([memory, u], dim=1)
            memory = read[:, read.shape[1] - config.conv + 1 :]
            u = silu(convolve(read, self.conv1d.conv.weight, self.conv1d.conv.bias))
        gates = torch.cat([*(self.get_submodule(name)(u) for name in _GATES[:2]), later], dim=-1)
        # (B, T, 4, H, c) and the matrices (H, c, 4c) of the recurrence
        gates = gates.unflatten(-1, (4, config.heads, -1)) + self.bias.transpose(0, 1)
        R = self.recurrent_kernel.flatten(2)
        y, c, n, m = (x.unflatten(-1, (config.heads, -1)) for x in cells.unbind(1))
        outputs = []
        for x in gates.unbind(1):
            i, f, z, o = (
                x + (y.transpose(0, 1) @ R).transpose(0, 1).unflatten(-1, (4, -1)).movedim(2, 1)
            ).unbind(1)  # fmt: skip
            carried = m + logsigmoid(f)
            # m is the largest exponent so far, subtracted from both gates; n = 0 marks the start, where nothing is
            # carried.
            m = torch.where(n == 0, i, torch.maximum(i, carried))
            written, decay = (i - m).exp().clamp(max=1), (carried - m).exp().clamp(max=1)
            c, n = decay * c + written * z.tanh(), decay * n + written
            y = o.sigmoid() * c / n
            outputs.append(y)
        state = torch.cat([torch.stack([x.flatten(1) for x in (y, c, n, m)], 1), memory], dim=1)
        return self._normed(torch.stack(outputs, 1).flatten(2)), state

    def _normed(self, y: Tensor) -> Tensor:
        heads = y.unflatten(-1, (self.config.heads, -1))
        return layer_norm(heads, heads.shape[-1:]).flatten(-2) * (1 + self.norm_weight)


class HeadwiseLinear(nn.Module):
    """A linear map with a matrix (c, c) per head."""

    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(heads, size, size) * math.sqrt(2 / 5 / size))

    def forward(self, x: Tensor) -> Tensor:
        """Return W x per head: (…, H·c) -> (…, H·c)."""
        return torch.einsum("...hd,hod->...ho", x.unflatten(-1, (len(self.weight), -1)), self.weight).flatten(-2)


class CausalConv(nn.Module):
    """A depthwise causal convolution with a bias."""

    def __init__(self, channels: int, length: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, length, groups=channels)
