"""Transitions as products of Householder-like factors: DeltaNet (one factor a letter) and DeltaProduct (several)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from fsa2lrnn.lrnn.block import BlockLayer
from fsa2lrnn.lrnn.config import HouseholderLayerConfig


class HouseholderLayer(BlockLayer):
    """x_k = (I − β_m k_m k_mᵀ) ⋯ (I − β_1 k_1 k_1ᵀ) x_{k−1} + v(u_k) in each of H blocks of size n, m = n_factors.

    The gate `transition` makes the keys, `rate` the β, `value` the additive term. As they are, a key of norm √2 with
    β = 1 reflects and one of norm 1 erases its direction, so integer keys give exact products. With `unit_keys` the
    keys are divided by their norms and β = 2σ(rate), so that a factor's eigenvalues are 1 and, along its key, one in
    (−1, 1): no product is longer than 1, however many letters there are.
    """

    def __init__(self, width_in: int, config: HouseholderLayerConfig) -> None:
        self._n_factors, self.unit_keys = config.n_factors, config.unit_keys
        super().__init__(width_in, config, "none", 2.0)
        self.rate = self.gate(width_in, config.transition_hidden, config.n_heads * config.n_factors)

    def _transition_width(self) -> int:
        return self._n_factors * sum(self.block_sizes)

    def factors(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and β, first factor first: (…, d) -> (…, H, m, n) and (…, H, m)."""
        keys = self.transition(u).unflatten(-1, (self.n_heads, self._n_factors, -1))
        rates = self.rate(u).unflatten(-1, (self.n_heads, self._n_factors))
        return (normalize(keys, dim=-1), 2 * rates.sigmoid()) if self.unit_keys else (keys, rates)

    def _written(self, u: Tensor) -> tuple[Tensor, Tensor]:
        keys, rates = self.factors(u)
        n = keys.shape[-1]
        A = torch.eye(n, dtype=keys.dtype, device=u.device).expand(*keys.shape[:-2], n, n)
        for j in range(self._n_factors):
            key = keys[..., j, :]
            along = key.unsqueeze(-2) @ A  # (…, H, 1, n)
            A = A - rates[..., j, None, None] * key.unsqueeze(-1) * along
        return A, self.value(u).unflatten(-1, (self.n_heads, n))
