"""Hard reflections: products of factors I − k kᵀ, k a difference of two unit vectors or one, chosen by letter (T51).

k = e_i − e_j exchanges two numbers, k = e_i erases one, k = 0 does nothing: products of integers, as those of T7. What
is erased can be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from fsa2lrnn.lrnn.layers.base import Shape
from fsa2lrnn.lrnn.layers.hard import HardConfig, HardLayer
from fsa2lrnn.lrnn.layers.hard_lanes import STARTS
from fsa2lrnn.lrnn.normalise import one_hot_rows


@dataclass(frozen=True)
class HardReflectionsConfig(HardConfig):
    """`heads` blocks of `size` numbers, `factors` a letter. The model's column rule is not for products."""

    size: int = 2
    factors: int = 1

    COUNTS: ClassVar[tuple[str, ...]] = ("heads", "hidden", "size", "factors")

    @property
    def block(self) -> int:
        """n."""
        return self.size

    @property
    def logits(self) -> int:
        """Two ends of each key, each a coordinate or none; and what is written into each coordinate."""
        return self.factors * 2 * (self.size + 1) + len(STARTS) * self.size

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """All but what the shape says."""
        return tuple(name for name in super().options() if name != "size")

    @classmethod
    def of_shape(cls, shape: Shape, options: Mapping[str, Any]) -> Self:
        """So many heads of that size. Raises `UnsupportedFormat` for an option that there is not."""
        cls.refuse_unknown(options)
        return cls(shape.heads, size=shape.block, **options)


class HardReflectionsLayer(HardLayer):
    """A = (I − k_m k_mᵀ) ⋯ (I − k_1 k_1ᵀ), each k = e_i − e_j, the ends i and j those of the largest of n + 1 logits,
    of which the last stands for none. v is −1, 0 or 1 in the rows of A that are zero, and 0 in others. x₀ is one-hot at
    the largest of `x0` (H, n).
    """

    Config = HardReflectionsConfig

    def __init__(self, width_in: int, config: HardReflectionsConfig) -> None:
        self._n_factors = config.factors
        super().__init__(width_in, config)

    @property
    def family(self) -> str | None:
        """Products of Householder factors."""
        return "householder"

    def initial_state(self, batch: int) -> Tensor:
        """The hard x₀ for each word of a batch: (B, H, n)."""
        return one_hot_rows(self.x0, self.temperature).expand(batch, *self.x0.shape)

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        """Ends of keys (…, H, 2m, n+1), and what is written (…, H, n, 3)."""
        n = self.mask.shape[1]
        ends, writes = logits.split([2 * self._n_factors * (n + 1), len(STARTS) * n], dim=-1)
        return ends.unflatten(-1, (-1, n + 1)), writes.unflatten(-1, (n, -1))

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """(…, H, 2m(n+1) + 3n) -> (…, H, n, n), (…, H, n)."""
        ends, writes = (one_hot_rows(part, self.temperature) for part in self.options(logits))
        n = self.mask.shape[1]
        first, second = ends[..., :n].unflatten(-2, (-1, 2)).unbind(-2)  # (…, H, m, n)
        A = torch.eye(n, dtype=logits.dtype, device=logits.device).expand(*logits.shape[:-1], n, n)
        for key in (first - second).unbind(-2):
            A = A - key.unsqueeze(-1) * (key.unsqueeze(-2) @ A)
        is_free = 1 - A.square().sum(-1)
        return A, is_free * (writes @ logits.new_tensor(STARTS))
