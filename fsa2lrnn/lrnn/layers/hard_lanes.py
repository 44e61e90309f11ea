"""Hard lanes: x_k = a x_{k−1} + v with a and v of −1, 0 and 1, chosen by letter: what diagonal layers can (T51)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fsa2lrnn.lrnn.layers.hard import HardConfig, HardLayer
from fsa2lrnn.lrnn.normalise import one_hot_rows

MAPS = ((1, 0), (-1, 0), (0, -1), (0, 0), (0, 1))
"""a and v of the maps that a lane chooses from: keep, change sign, write −1, 0 or 1."""
STARTS = (-1, 0, 1)


@dataclass(frozen=True)
class HardLanesConfig(HardConfig):
    """`heads` lanes, blocks of size 1. The model's column rule is for blocks that a gate writes out, not for these."""

    @property
    def logits(self) -> int:
        """One a map."""
        return len(MAPS)


class HardLanesLayer(HardLayer):
    """Each lane takes one of `MAPS`, that of the largest of five logits; x₀ is that of three, `x0` (H, 3)."""

    Config = HardLanesConfig

    def __init__(self, width_in: int, config: HardLanesConfig) -> None:
        super().__init__(width_in, config)
        self.x0 = nn.Parameter(torch.randn(config.heads, len(STARTS)))

    @property
    def family(self) -> str | None:
        """Diagonal, and all that that family can (T51)."""
        return "diagonal[-1,1]"

    def initial_state(self, batch: int) -> Tensor:
        """The hard x₀ for each word of a batch: (B, H, 1)."""
        x0 = one_hot_rows(self.x0, self.temperature) @ self.x0.new_tensor(STARTS)
        return x0[:, None].expand(batch, -1, 1)

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """(…, H, 5) -> (…, H, 1, 1), (…, H, 1)."""
        a, v = (one_hot_rows(logits, self.temperature) @ logits.new_tensor(MAPS)).unsqueeze(-1).unbind(-2)
        return a.unsqueeze(-1), v

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        """One choice of five."""
        return (logits.unsqueeze(-2),)
