"""minGRU (Feng et al. 2024): x_k = (1 − z) x_{k−1} + z g(h), z = σ(·) and h linear in the input, g > 0.

g(h) is h + 1/2 for h ≥ 0 and σ(h) below, as in the version of the paper that scans logarithms. The parameter has the
name of minGRU in lucidrains' minGRU-pytorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers.base import Layer, LayerConfig, check_width
from fsa2lrnn.nn.layers.block import scan_states
from fsa2lrnn.nn.rounding import RoundedNumbers
from fsa2lrnn.nn.scans import METHODS


@dataclass(frozen=True)
class MinGRUConfig(LayerConfig):
    """The configuration of a minGRU of `width` numbers."""

    width: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is

    def __post_init__(self) -> None:
        if type(self.width) is not int or self.width < 1:
            raise UnsupportedFormat(f"width = {self.width!r}: minGRU needs a positive whole number")
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
