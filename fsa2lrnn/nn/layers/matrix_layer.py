"""The base class of layers with a matrix state: S_t = S_{t−1} (diagonal + rank one) + v kᵀ per head, read by queries.

Each layer either computes what its published code does ("gated": convolution, queries, norm, gate and projection), or
only its recurrence ("state"): the output is then the matrix state, flattened, so that one layer over letters has
tables, one block for each row of S.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, embedding, silu

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.base import Layer, LayerConfig, check_width
from fsa2lrnn.nn.layers.block import scan_states
from fsa2lrnn.nn.layers.matrix_scan import METHODS, RankOneSteps, matrix_scan, transition
from fsa2lrnn.nn.rounding import RoundedNumbers
from fsa2lrnn.nn.scans import METHODS as STATE_METHODS

READS = ("gated", "state")
NORM_EPS = 1e-5


@dataclass(frozen=True)
class MatrixConfig(LayerConfig):
    """A configuration with `heads` matrix states of `block` columns (keys) and expand_v·block rows (values).

    Args:
        conv: the number of letters that the short convolution of queries, keys and values reads, 0 for none.
        reads: "gated" for the published layer, "state" for only its recurrence, without convolution, whose output is
            the state.
        outputs: the width of the published layer, 0 for heads·block.
    """

    heads: int
    block: int
    expand_v: float = 1.0
    conv: int = 4
    reads: str = "gated"
    outputs: int = 0

    def __post_init__(self) -> None:
        for name in ("heads", "block"):
            if type(value := getattr(self, name)) is not int or value < 1:
                raise UnsupportedFormat(f"{name} = {value!r}: {type(self).__name__} needs a positive whole number")
        if self.expand_v <= 0 or self.expand_v * self.block != self.values:
            raise UnsupportedFormat(f"expand_v = {self.expand_v}: {self.block} keys take a whole number of values")
        if self.reads not in READS:
            raise UnsupportedFormat(f"reads = {self.reads!r}: one of {', '.join(READS)}")
        if type(self.conv) is not int or self.conv < 0 or (self.conv and self.reads == "state"):
            raise UnsupportedFormat(f'conv = {self.conv!r}: a number of letters, 0 with reads="state": set conv=0')
        if type(self.outputs) is not int or self.outputs < 0 or (self.outputs and self.is_state):
            raise UnsupportedFormat(f'outputs = {self.outputs!r}: a width, or 0, as with reads="state"')
        check_width(max(self.outputs, self.heads * self.values * self.block))

    @property
    def values(self) -> int:
        """V, the number of rows of a state."""
        return int(self.block * self.expand_v)

    @property
    def is_state(self) -> bool:
        """Whether the output is the state."""
        return self.reads == "state"

    @property
    def width(self) -> int:
        """The number of outputs per step."""
        return self.heads * self.block * self.values if self.is_state else self.outputs or self.heads * self.block

    @property
    def entries(self) -> int:
        """The largest number of entries per token: those of H·V blocks A(u), or of a state."""
        return self.heads * self.values * self.block * (self.block if self.is_state else 1)


class MatrixLayer(Layer):
    """The base class of layers whose state is a matrix S per head.

    Subclasses set the sizes, `projected`, `steps`, and `gated`, the end of the published layer.

    The state is (B, memory + H·V·K): the memory of the convolution, then S. With reads="state" it is (B, H·V, K), and
    the first one is the parameter `x0`, zero in a new layer.
    """

    takes_index: ClassVar[bool] = True
    config: Any

    def __init__(self, config: MatrixConfig, convolved: dict[str, int]) -> None:
        super().__init__()
        self.config = config
        self.convolved = convolved
        self.channels = sum(convolved.values())
        if config.is_state:
            self.x0 = nn.Parameter(torch.zeros(config.heads * config.values, config.block))
        elif config.conv:
            for name, size in convolved.items():
                self.add_module(f"{name}_conv1d", ShortConvolution(size, config.conv))

    @property
    def methods(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] - depends on the mode
        """The scans that `forward` takes: those of `lrnn.scans` with reads="state", else those of `matrix_scan`."""
        return tuple(STATE_METHODS) if self.config.is_state else tuple(METHODS)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The block sizes if the state is the output: one block for each row of a state."""
        return (self.config.block,) * (self.config.heads * self.config.values) if self.config.is_state else ()

    @property
    def has_tables(self) -> bool:
        """Whether the output is the state."""
        return self.config.is_state

    @property
    def memory(self) -> int:
        """The numbers that the state holds before S."""
        return (self.config.conv - 1) * self.channels if self.config.conv else 0

    def projected(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return the input of the convolution, (…, d) -> (…, C), and everything else, (…, R)."""
        raise NotImplementedError

    def steps(self, x: Tensor, rest: Tensor) -> RankOneSteps:
        """Return the steps from the output of convolution and SiLU (…, C) and the rest (…, R)."""
        raise NotImplementedError

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the layer's output from o (B, T, H, V) -> (B, T, width)."""
        raise NotImplementedError

    def initial_state(self, batch: int) -> Tensor:
        """Return zeros, or x₀ (B, H·V, K)."""
        if self.config.is_state:
            return self.x0.expand(batch, -1, -1)
        config = self.config
        weight = next(self.parameters())
        return weight.new_zeros(batch, self.memory + config.heads * config.values * config.block)

    def emit(self, state: Tensor) -> Tensor:
        """Return the state, or zeros if the output of the published layer depends on an input."""
        return state.flatten(1) if self.config.is_state else state.new_zeros(len(state), self.config.width)

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return A(u) and v(u), the same A for all rows of a head: (…, d) -> (…, H·V, K, K), (…, H·V, K)."""
        if not self.config.is_state:
            return super().tables(u, method)
        A, v = transition(self._letter_steps(u))
        return A.unsqueeze(-3).expand(*v.shape, v.shape[-1]).flatten(-4, -3), v.flatten(-3, -2)

    def _rounded_steps(self, u: RoundedNumbers) -> rounding.RoundedSteps | None:
        """Return bounds of the steps of letters, or None where none are declared."""
        return None

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return bounds of A(u) and v(u) for every evaluation of projections, gates and products."""
        steps = self._rounded_steps(u) if self.config.is_state else None
        return super().rounded_tables(u) if steps is None else rounding.transition(steps)

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return outputs and the last state: u (B, T, d), or rows (N, d) with index (B, T) -> (B, T, width), state."""
        if self.config.is_state:
            return scan_states(self, u, state, method, index)
        config = self.config
        if not (u if index is None else index).shape[1]:
            return u.new_zeros(len(state), 0, config.width), state
        memory, S = state.split([self.memory, state.shape[1] - self.memory], dim=1)
        steps, rest, memory = self._read(u, index, memory)
        o, S = matrix_scan(steps, S.view(-1, config.heads, config.values, config.block), method)
        return self.gated(o, rest, steps), torch.cat([memory, S.flatten(1)], dim=1)

    def _read(self, u: Tensor, index: Tensor | None, memory: Tensor) -> tuple[RankOneSteps, Tensor, Tensor]:
        """Return the steps (B, T, …), the rest (B, T, R) and the new memory."""
        x, rest = self.projected(u)
        if not self.config.conv:
            # All depends on the letter alone, and is computed for each row once.
            steps = self.steps(silu(x), rest)
            return (steps, rest, memory) if index is None else (steps.at(index), embedding(index, rest), memory)
        if index is not None:
            x, rest = embedding(index, x), embedding(index, rest)
        x = torch.cat([memory.view(len(x), -1, self.channels), x], dim=1)
        kernels = [self.get_submodule(f"{name}_conv1d") for name in self.convolved]
        weight = torch.cat([kernel.get_parameter("weight") for kernel in kernels])
        after = x[:, x.shape[1] - self.config.conv + 1 :].flatten(1)
        return self.steps(silu(convolve(x, weight, self._conv_bias())), rest), rest, after

    def _conv_bias(self) -> Tensor | None:
        return None

    def _letter_steps(self, u: Tensor) -> RankOneSteps:
        x, rest = self.projected(u)
        return self.steps(silu(x), rest)


class ShortConvolution(nn.Module):
    """The weights (C, 1, W) of a depthwise causal convolution."""

    def __init__(self, channels: int, length: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels, 1, length) * (2 / math.sqrt(length)) - 1 / math.sqrt(length))


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return Σ_i w_i x_{t+i} for each channel: x (B, T + W − 1, C), w (C, 1, W) -> (B, T, C)."""
    return conv1d(x.mT, weight, bias, groups=len(weight)).mT


def unit(x: Tensor) -> Tensor:
    """Return x / √(Σ x² + 10⁻⁶) along the last axis."""
    return x * (x.square().sum(-1, keepdim=True) + rounding.UNIT_EPS).rsqrt()


def normed(x: Tensor, weight: Tensor, eps: float = NORM_EPS) -> Tensor:
    """Return x / √(mean(x²) + eps) · weight along the last axis (RMSNorm): x (…, d), weight (d,) -> (…, d)."""
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight


def drawn_steps(n: int, shortest: float = 0.001, longest: float = 0.1) -> Tensor:
    """Return biases whose softplus is log-uniform between the given step sizes: (n,)."""
    dt = torch.exp(torch.rand(n) * (math.log(longest) - math.log(shortest)) + math.log(shortest)).clamp(min=1e-4)
    return dt + torch.log(-torch.expm1(-dt))
