"""Transitions as products of Householder-like factors: DeltaNet (one factor a letter) and DeltaProduct (several)."""

from __future__ import annotations

import torch
from torch import Tensor

from fsa2lrnn.lrnn.block import BlockLayer
from fsa2lrnn.lrnn.config import HouseholderLayerConfig


class HouseholderLayer(BlockLayer):
    """x_k = (I − β_m k_m k_mᵀ) ⋯ (I − β_1 k_1 k_1ᵀ) x_{k−1} + v(u_k), one block of size n and m = n_factors.

    The gate `transition` makes the keys, `rate` the β, `value` the additive term. Keys are not normalised here: with
    β = 1 a key of norm √2 reflects and one of norm 1 erases its direction, so integer keys give exact products.
    """

    def __init__(self, width_in: int, config: HouseholderLayerConfig) -> None:
        self._n_factors = config.n_factors
        super().__init__(width_in, config, "none", 2.0)
        self.rate = self.gate(width_in, config.transition_hidden, config.n_factors)

    def _transition_width(self) -> int:
        return self._n_factors * self.block_sizes[0]

    def _written(self, u: Tensor) -> tuple[Tensor, Tensor]:
        n = self.block_sizes[0]
        keys = self.transition(u).unflatten(-1, (self._n_factors, n))
        rates = self.rate(u)
        A = torch.eye(n, dtype=u.dtype, device=u.device).expand(*u.shape[:-1], n, n)
        for j in range(self._n_factors):
            key = keys[..., j, :]
            along = key.unsqueeze(-2) @ A  # (…, 1, n)
            A = A - rates[..., j, None, None] * key.unsqueeze(-1) * along
        return A.unsqueeze(-3), self.value(u).unsqueeze(-2)
