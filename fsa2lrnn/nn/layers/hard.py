"""Layers in which logits select one of finitely many transitions, with the gradient of a softmax (T51).

The selection is that of one-hot columns (`normalise.one_hot_rows`): the forward pass uses the transition of the largest
logit, in training as in evaluation; the backward pass differentiates the average under softmax(logits/τ). Hard scalar
channels are what diagonal layers can represent. Hard reflections are products of factors I − k kᵀ: k = e_i − e_j
exchanges two numbers, k = e_i erases one and k = 0 has no effect. An erased number can be replaced by −1 or 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from fsa2lrnn.nn.gate import check_kind, new_gate
from fsa2lrnn.nn.layers.base import LayerConfig, Shape, check_positive, check_width, exchanges_closed, is_signed
from fsa2lrnn.nn.layers.block import AffineLayer
from fsa2lrnn.nn.normalise import TEMPERATURE, check_temperature, one_hot_rows
from fsa2lrnn.nn.rounding import RoundedNumbers


@dataclass(frozen=True)
class HardConfig(LayerConfig):
    """The configuration of `heads` blocks of one size, whose logits come from a gate.

    With `gate` "relu" the gate is Linear–ReLU–Linear with `hidden` units. With "table" the logits are free numbers for
    each unit vector that is read, in a first layer for each letter. `temperature` is that of the softmax in the
    backward pass. Raises `UnsupportedFormat` for an invalid value.
    """

    heads: int
    gate: str = "relu"
    hidden: int = 64
    temperature: float = TEMPERATURE

    COUNTS: ClassVar[tuple[str, ...]] = ("heads", "hidden")

    def __post_init__(self) -> None:
        check_positive(self, *self.COUNTS)
        check_width(self.width)
        check_kind(self.gate)
        check_temperature(self.temperature)

    @property
    def block(self) -> int:
        """The size of a block."""
        return 1

    @property
    def width(self) -> int:
        return self.heads * self.block

    @property
    def logits(self) -> int:
        """The number of logits per block."""
        raise NotImplementedError

    @property
    def entries(self) -> int:
        return max(self.heads * self.logits, self.width * self.block, self.hidden)


@dataclass(frozen=True)
class SizedHardConfig(HardConfig):
    """The configuration of a hard layer of `heads` blocks of `size` numbers; a run's `Shape` sets both."""

    size: int = 2

    COUNTS: ClassVar[tuple[str, ...]] = ("heads", "hidden", "size")

    @property
    def block(self) -> int:
        """The size of a block."""
        return self.size

    @classmethod
    def options(cls) -> tuple[str, ...]:
        return tuple(name for name in super().options() if name != "size")

    @classmethod
    def of_shape(cls, shape: Shape, options: Mapping[str, Any]) -> Self:
        """Return a configuration with the shape's heads and blocks; raise `UnsupportedFormat` for unknown options."""
        cls.refuse_unknown(options)
        return cls(shape.heads, size=shape.block, **options)


class HardLayer(AffineLayer):
    """The base class of layers whose logits select transitions that permute and write −1, 0 and 1 (T51)."""

    def __init__(self, width_in: int, config: Any) -> None:
        self.temperature = config.temperature
        gate = new_gate(config.gate, width_in, config.hidden, config.heads * config.logits)
        super().__init__((config.block,) * config.heads, gate, None)

    @classmethod
    def is_finite(cls, rule: str) -> bool:
        return True

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return A and v that the logits choose: (…, H, n) -> (…, H, b, b), (…, H, b)."""
        raise NotImplementedError

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        """Split the logits into groups, in each of which the largest is chosen: (…, H, n) -> tensors (…, H, k, c)."""
        raise NotImplementedError

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return A(u) and v(u): (…, d) -> (…, H, b, b) and (…, H, b)."""
        return self.chosen(self.transition(u).unflatten(-1, (self.n_heads, -1)))

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return A(u) and v(u) with error bounds: 2 in blocks whose selection rounding can change, else 0."""
        logits = self.transition.rounded(u).unflatten((self.n_heads, -1))
        A, v = self.chosen(logits.mid)
        off = 2 * self._is_open(logits).to(v.dtype).unsqueeze(-1)  # (…, H, 1)
        return (
            RoundedNumbers(A, off.unsqueeze(-1).expand_as(A).clone(), u.kind),
            RoundedNumbers(v, off.expand_as(v).clone(), u.kind),
        )

    def _is_open(self, logits: RoundedNumbers) -> Tensor:
        """Return whether rounding can change which logit is the largest: (…, H, n) -> bool (…, H)."""
        is_open = torch.zeros(logits.mid.shape[:-1], dtype=torch.bool)
        for mid, off in zip(self.options(logits.mid), self.options(logits.off), strict=True):
            columns = RoundedNumbers(mid.unsqueeze(-1), off.unsqueeze(-1), logits.kind)
            hot = columns.largest(torch.ones(mid.shape[-1], 1, dtype=torch.bool))
            is_open |= (hot.off != 0).flatten(-3).any(-1)
        return is_open

    def is_lookup(self, u: Tensor) -> bool:
        return all(gate.is_lookup(u) for _, gate in self.gates)

    def starts_exact(self) -> bool:
        return is_signed(self.initial_state(1))

    def is_exact(self, u: Tensor, limit: float) -> bool:
        A, v = self.rounded_tables(RoundedNumbers.exact(u))
        return A.is_exact and v.is_exact and exchanges_closed(A.mid, v.mid)


MAPS = ((1, 0), (-1, 0), (0, -1), (0, 0), (0, 1))
"""The pairs (a, v) of the maps x ↦ a·x + v that a channel selects: keep, change the sign, write −1, 0 or 1."""
STARTS = (-1, 0, 1)


@dataclass(frozen=True)
class HardChannelsConfig(HardConfig):
    """The configuration of `heads` blocks of size 1. The column rule does not apply: no gate outputs A."""

    @property
    def logits(self) -> int:
        """The number of logits per block: one per map in `MAPS`."""
        return len(MAPS)


class HardChannelsLayer(HardLayer):
    """Blocks of size 1, in which the largest of five logits selects one of `MAPS`, and `x0` (H, 3) selects x₀."""

    Config = HardChannelsConfig

    def __init__(self, width_in: int, config: HardChannelsConfig) -> None:
        super().__init__(width_in, config)
        self.x0 = nn.Parameter(torch.randn(config.heads, len(STARTS)))

    @property
    def family(self) -> str | None:
        """The family "diagonal[-1,1]"; the layer represents every machine that this family represents (T51)."""
        return "diagonal[-1,1]"

    def initial_state(self, batch: int) -> Tensor:
        x0 = one_hot_rows(self.x0, self.temperature) @ self.x0.new_tensor(STARTS)
        return x0[:, None].expand(batch, -1, 1)

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return A and v that the logits choose: (…, H, 5) -> (…, H, 1, 1), (…, H, 1)."""
        a, v = (one_hot_rows(logits, self.temperature) @ logits.new_tensor(MAPS)).unsqueeze(-1).unbind(-2)
        return a.unsqueeze(-1), v

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        return (logits.unsqueeze(-2),)


@dataclass(frozen=True)
class HardReflectionsConfig(SizedHardConfig):
    """The configuration of `heads` blocks of `size` numbers and `factors` factors per letter, without column rule."""

    factors: int = 1

    COUNTS: ClassVar[tuple[str, ...]] = (*SizedHardConfig.COUNTS, "factors")

    @property
    def logits(self) -> int:
        """The number of logits per block: for the indices of each key, and for the number written per coordinate."""
        return self.factors * 2 * (self.size + 1) + len(STARTS) * self.size


class HardReflectionsLayer(HardLayer):
    """Blocks A = (I − k_m k_mᵀ) ⋯ (I − k_1 k_1ᵀ), where logits select i and j of each key k = e_i − e_j.

    Each of i and j is the largest of n + 1 logits, of which the last stands for no coordinate. v is −1, 0 or 1 in the
    rows of A that are zero, and 0 in others. x₀ is one-hot at the largest entry of `x0` (H, n).
    """

    Config = HardReflectionsConfig

    def __init__(self, width_in: int, config: HardReflectionsConfig) -> None:
        self._n_factors = config.factors
        super().__init__(width_in, config)

    @property
    def family(self) -> str | None:
        return "householder"

    def initial_state(self, batch: int) -> Tensor:
        return one_hot_rows(self.x0, self.temperature).expand(batch, *self.x0.shape)

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        n = self.mask.shape[1]
        ends, writes = logits.split([2 * self._n_factors * (n + 1), len(STARTS) * n], dim=-1)
        return ends.unflatten(-1, (-1, n + 1)), writes.unflatten(-1, (n, -1))

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return A and v that the logits choose: (…, H, 2m(n+1) + 3n) -> (…, H, n, n), (…, H, n)."""
        ends, writes = (one_hot_rows(part, self.temperature) for part in self.options(logits))
        n = self.mask.shape[1]
        first, second = ends[..., :n].unflatten(-2, (-1, 2)).unbind(-2)  # (…, H, m, n)
        A = torch.eye(n, dtype=logits.dtype, device=logits.device).expand(*logits.shape[:-1], n, n)
        for key in (first - second).unbind(-2):
            A = A - key.unsqueeze(-1) * (key.unsqueeze(-2) @ A)
        is_free = 1 - A.square().sum(-1)
        return A, is_free * (writes @ logits.new_tensor(STARTS))
