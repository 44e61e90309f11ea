"""Transitions as products of Householder-like factors: DeltaNet (one factor per letter) and DeltaProduct (several)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch import Tensor
from torch.nn.functional import normalize

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layers.base import LayerConfig, Shape, check_positive, check_width, maps_closed
from fsa2lrnn.nn.layers.block import AffineLayer
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers


@dataclass(frozen=True)
class HouseholderLayerConfig(LayerConfig):
    """The configuration of `n_heads` blocks of size `size`, with products of `n_factors` factors I − β k kᵀ.

    With `unit_keys` each k is divided by its norm and 0 < β < 2, so that no factor lengthens a state; training needs
    this. Without, k and β are the outputs of the gates, and integers give exact products. The model's column rule
    does not apply to products. Raises `UnsupportedFormat` for a size that is not a positive whole number.
    """

    size: int
    n_factors: int
    transition_hidden: int
    value_hidden: int
    n_heads: int = 1
    unit_keys: bool = False

    def __post_init__(self) -> None:
        check_positive(self, "size", "n_factors", "transition_hidden", "value_hidden", "n_heads")
        check_width(self.width)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        return (self.size,) * self.n_heads

    @property
    def width(self) -> int:
        return self.n_heads * self.size

    @property
    def entries(self) -> int:
        return max(self.width * max(self.size, self.n_factors), self.transition_hidden, self.value_hidden)

    @classmethod
    def options(cls) -> tuple[str, ...]:
        return ("factors",)

    @classmethod
    def of_shape(cls, shape: Shape, options: Mapping[str, Any]) -> Self:
        cls.refuse_unknown(options)
        m = options.get("factors", 1)
        if type(m) is not int or m < 1:
            raise UnsupportedFormat(f"factors = {m!r}: a product has 1 factor or more, a whole number")
        return cls(shape.block, m, shape.width * m, shape.width, shape.heads, unit_keys=True)


class HouseholderLayer(AffineLayer):
    """The layer x_k = (I − β_m k_m k_mᵀ) ⋯ (I − β_1 k_1 k_1ᵀ) x_{k−1} + v(u_k), in H blocks of size n, m = n_factors.

    The gate `transition` computes the keys, `rate` the β, `value` the additive term. A key of norm √2 with β = 1
    reflects and one of norm 1 erases its direction, so integer keys give exact products. With `unit_keys` the keys are
    divided by their norms and β = 2σ(rate), so every product has a spectral norm of at most 1.
    """

    Config = HouseholderLayerConfig

    def __init__(self, width_in: int, config: HouseholderLayerConfig) -> None:
        self._n_factors, self.unit_keys = config.n_factors, config.unit_keys
        transition = Gate(width_in, config.transition_hidden, config.n_factors * config.width)
        super().__init__(config.block_sizes, transition, Gate(width_in, config.value_hidden, config.width))
        self.rate = Gate(width_in, config.transition_hidden, config.n_heads * config.n_factors)

    @property
    def family(self) -> str | None:
        return "householder"

    def factors(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and the β, in the order of application: (…, d) -> (…, H, m, n) and (…, H, m)."""
        keys = self.transition(u).unflatten(-1, (self.n_heads, self._n_factors, -1))
        rates = self.rate(u).unflatten(-1, (self.n_heads, self._n_factors))
        return (normalize(keys, dim=-1), 2 * rates.sigmoid()) if self.unit_keys else (keys, rates)

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return the products A(u), and v(u): (…, d) -> (…, H, n, n) and (…, H, n)."""
        keys, rates = self.factors(u)
        n = keys.shape[-1]
        A = torch.eye(n, dtype=keys.dtype, device=u.device).expand(*keys.shape[:-2], n, n)
        for j in range(self._n_factors):
            key = keys[..., j, :]
            # kᵀA first, so that a factor costs n² instead of n³ multiplications.
            along = key.unsqueeze(-2) @ A  # (…, H, 1, n)
            A = A - rates[..., j, None, None] * key.unsqueeze(-1) * along
        return A, cast("Gate", self.value)(u).unflatten(-1, (self.n_heads, n))

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return A(u) and v(u) with error bounds, which include the norms and sigmoids of unit keys."""
        keys = self.transition.rounded(u).unflatten((self.n_heads, self._n_factors, -1))
        rates = self.rate.rounded(u).unflatten((self.n_heads, self._n_factors))
        if self.unit_keys:
            keys, rates = keys.normalised(), rates.sigmoid().scaled(2)
        n = keys.mid.shape[-1]
        A = RoundedNumbers.exact(torch.eye(n).expand(*keys.mid.shape[:-2], n, n), u.kind)
        for j in range(self._n_factors):
            key = keys[..., j, :]
            A = A - rates[..., j, None, None] * key[..., None] * (key[..., None, :] @ A)
        return A, cast("Gate", self.value).rounded(u).unflatten((self.n_heads, n))

    def is_exact(self, u: Tensor, limit: float) -> bool:
        return (
            all(gate.is_exact(u, limit) for _, gate in self.gates)
            and self._is_exact_product(u, limit)
            and maps_closed(*self.tables(u), self.mask)
        )

    def _is_exact_product(self, u: Tensor, limit: float) -> bool:
        """Return whether the sums in A − β k (kᵀ A), factor by factor, stay within `limit`; False for unit keys."""
        if self.unit_keys:
            return False
        keys, rates = (part.double().flatten(0, 1) for part in self.factors(u))  # (N·H, m, n), (N·H, m)
        n = keys.shape[-1]
        product, largest = torch.eye(n, dtype=torch.float64, device=u.device).expand(len(keys), n, n), 0.0
        for key, rate in zip(keys.unbind(1), rates.unbind(1), strict=True):
            scaled = (rate[:, None] * key)[:, :, None]  # (N·H, n, 1)
            # T26: the sizes of all terms of A − β k (kᵀA) bound every partial sum, and kᵀA alone is no larger for
            # integers β k ≠ 0.
            sizes = product.abs() + scaled.abs() @ (key.abs()[:, None] @ product.abs())
            largest = max(largest, float(sizes.max()))
            product = product - scaled @ (key[:, None] @ product)
        return largest <= limit
