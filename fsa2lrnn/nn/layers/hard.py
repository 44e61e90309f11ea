"""Layers in which logits select one of finitely many transitions, with the gradient of a softmax (T51).

The selection is that of one-hot columns (`normalise.one_hot_rows`): the forward pass uses the transition of the largest
logit, in training as in evaluation; the backward pass differentiates the average under softmax(logits/τ). Hard scalar
channels are what diagonal layers can represent. Hard reflections are products of factors I − k kᵀ: k = e_i − e_j
exchanges two numbers, k = e_i erases one and k = 0 has no effect. An erased number can be replaced by −1 or 1.

PD-SSM, DeltaProduct and SLiCE have hard forms whose blocks are matrices. The backward pass of a permutation is that of
Sinkhorn's iteration. All numbers are −1, 0 and 1, each sum has at most one nonzero term, and no scan rounds.

- `hard_pd_ssm`: rows of P one-hot, D of −1 and 1, no additive term.
- `hard_deltaproduct`: exchanges of coordinates, then each coordinate is unchanged or replaced by −1, 0 or 1. A
  permutation with c cycles is n − c factors I − 2 k kᵀ with k = (e_i − e_j)/√2, and a write is a factor with k = e_i.
- `hard_slice`: the blocks I + A are permutations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from fsa2lrnn.nn.gate import check_kind, new_gate
from fsa2lrnn.nn.layers.base import (
    LayerConfig,
    Shape,
    check_positive,
    check_temperature,
    check_width,
    exchanges_closed,
    is_signed,
)
from fsa2lrnn.nn.layers.block import AffineLayer
from fsa2lrnn.nn.normalise import TEMPERATURE, one_hot_rows, straight_through
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers


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
        # Two entries of −1, 0 and 1 differ by at most 2, so a block whose choice is open has this bound everywhere.
        off = 2 * self._is_open(logits).to(v.dtype).unsqueeze(-1)  # (…, H, 1)
        return (
            RoundedNumbers(A, off.unsqueeze(-1).expand_as(A).clone(), u.kind),
            RoundedNumbers(v, off.expand_as(v).clone(), u.kind),
        )

    def _is_open(self, logits: RoundedNumbers) -> Tensor:
        """Return whether rounding can change which logit is the largest: (…, H, n) -> bool (…, H)."""
        is_open = torch.zeros(logits.mid.shape[:-1], dtype=torch.bool)
        for mid, off in zip(self.options(logits.mid), self.options(logits.off), strict=True):
            # Each group of logits becomes a column of its own, so that `largest` compares within the group.
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
        # The logit of no coordinate is cut off: choosing it leaves the zero vector, so the key is ±e_i or 0.
        first, second = ends[..., :n].unflatten(-2, (-1, 2)).unbind(-2)  # (…, H, m, n)
        A = torch.eye(n, dtype=logits.dtype, device=logits.device).expand(*logits.shape[:-1], n, n)
        for key in (first - second).unbind(-2):
            # (I − k kᵀ) A without the factor as a matrix; later factors stand to the left.
            A = A - key.unsqueeze(-1) * (key.unsqueeze(-2) @ A)
        # Rows of a signed partial permutation have a square sum of 1 or 0; only zero rows are written (T51).
        is_free = 1 - A.square().sum(-1)
        return A, is_free * (writes @ logits.new_tensor(STARTS))


_SINKHORN = 8  # iterations of the gradient's doubly stochastic matrix
_WRITES = (-1, 0, 1)
_KEEPS = 2.0  # added to the first logits of keeping a number
_FIRST = 4.0  # added to the first logits of a permutation


class _HardMatrixConfig(SizedHardConfig):
    @property
    def logits(self) -> int:
        """The number of logits: one for each entry of a block."""
        return self.size**2


@dataclass(frozen=True)
class HardPDSSMConfig(_HardMatrixConfig):
    """A configuration with `heads` blocks of `size` states; with `signs`, D has entries −1 and 1, otherwise D = I."""

    signs: bool = False

    @property
    def logits(self) -> int:
        """The number of logits: one for each entry of P, and two for each of D."""
        return self.size**2 + 2 * self.size * self.signs


@dataclass(frozen=True)
class HardDeltaProductConfig(_HardMatrixConfig):
    """A configuration with `heads` blocks of `size` numbers; with `writes` each coordinate may be overwritten."""

    writes: bool = True

    @property
    def logits(self) -> int:
        """The number of logits: one for each entry of a permutation, and four for the value of each coordinate."""
        return self.size**2 + (len(_WRITES) + 1) * self.size * self.writes


@dataclass(frozen=True)
class HardSliceConfig(_HardMatrixConfig):
    """A configuration with `heads` blocks of `size` numbers."""


class _HardMatrixLayer(HardLayer):
    def initial_state(self, batch: int) -> Tensor:
        """Return the one-hot x₀ for each word of a batch: (B, H, n)."""
        return one_hot_rows(self.x0, self.temperature).expand(batch, *self.x0.shape)

    def is_exact(self, u: Tensor, limit: float) -> bool:
        """Return whether rounding changes no choice, and each row of each product copies one number or none."""
        A, v = self.rounded_tables(RoundedNumbers.exact(u))
        is_copy = ((A.mid != 0).sum(-1) <= 1).all() and is_signed(A.mid) and is_signed(v.mid)
        is_write = not ((A.mid != 0).any(-1) & (v.mid != 0)).any()
        return A.is_exact and v.is_exact and bool(is_copy) and is_write


class HardPDSSMLayer(_HardMatrixLayer):
    """The layer x_k = D P x_{k−1}: row i of P copies the coordinate of its largest logit, D sets the sign."""

    Config = HardPDSSMConfig

    def __init__(self, width_in: int, config: HardPDSSMConfig) -> None:
        self._signs = config.signs
        super().__init__(width_in, config)
        n = config.size  # a new layer permutes, as random maps forget most of what was read
        with torch.no_grad():
            # (H, n, n, letters): a random permutation of columns per head and letter gets a lead of _FIRST.
            P = _first_logits(self, config)[:, : n * n].unflatten(1, (n, n))
            P.scatter_add_(2, torch.rand_like(P[:, :, 0]).argsort(1).unsqueeze(2), torch.full_like(P[:, :, :1], _FIRST))

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of P (…, H, n, n), and of D (…, H, n, 2)."""
        n = self.mask.shape[1]
        P = logits[..., : n * n].unflatten(-1, (n, n))
        return (P, logits[..., n * n :].unflatten(-1, (n, 2))) if self._signs else (P,)

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return D P and zero: (…, H, n² + 2n) -> (…, H, n, n), (…, H, n)."""
        P, *signs = (one_hot_rows(part, self.temperature) for part in self.options(logits))
        A = P * (signs[0] @ P.new_tensor([1, -1])).unsqueeze(-1) if signs else P
        return A, A.new_zeros(A.shape[:-1])


class _PermutingLayer(_HardMatrixLayer):
    def __init__(self, width_in: int, config: _HardMatrixConfig) -> None:
        self._has_writes = config.logits > config.size**2
        super().__init__(width_in, config)

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of the value of each coordinate (…, H, n, 4), if there are any."""
        n = self.mask.shape[1]
        return (logits[..., n * n :].unflatten(-1, (n, -1)),) if self._has_writes else ()

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the exchanges and the writes: (…, H, n² + 4n) -> (…, H, n, n), (…, H, n)."""
        n = self.mask.shape[1]
        P = permutation(logits[..., : n * n].unflatten(-1, (n, n)), self.temperature)
        if not self._has_writes:
            return P, P.new_zeros(P.shape[:-1])
        becomes = one_hot_rows(self.options(logits)[0], self.temperature)
        # A row of P is erased where another value is chosen, so that v writes to zero rows only (T51).
        return P * becomes[..., :1], becomes[..., 1:] @ P.new_tensor(_WRITES)

    def _is_open(self, logits: RoundedNumbers) -> Tensor:
        n = self.mask.shape[1]
        # The rule compares any two entries of the permutation.
        return ~logits[..., : n * n].is_ordered() | super()._is_open(logits)


class HardDeltaProductLayer(_PermutingLayer):
    """The layer x_k = A x_{k−1} + v with a permutation A, whose rows are zero where v writes; x₀ is one-hot."""

    Config = HardDeltaProductConfig

    def __init__(self, width_in: int, config: HardDeltaProductConfig) -> None:
        super().__init__(width_in, config)
        if config.writes:  # a new layer keeps most numbers, as random writes forget all that was read before
            with torch.no_grad():
                # Each coordinate has four logits, of which the first keeps its number.
                _first_logits(self, config)[:, config.size**2 :: len(_WRITES) + 1] += _KEEPS

    @property
    def family(self) -> str | None:
        """The family of Householder products."""
        return "householder"


class HardSliceLayer(_PermutingLayer):
    """The layer x_k = P x_{k−1} with a permutation P in each block; x₀ is one-hot."""

    Config = HardSliceConfig

    @property
    def family(self) -> str | None:
        """The family of blocks of this size."""
        return f"block({self.mask.shape[1]})"


def _first_logits(layer: HardLayer, config: HardConfig) -> Tensor:
    """Return the parameters that set the logits of each letter, or of all: a view, (H, logits, letters or 1)."""
    weights = layer.transition.weights
    numbers = weights.W2 if config.gate == "table" else weights.b2.unsqueeze(-1)
    return numbers.unflatten(0, (config.heads, -1))


def permutation(logits: Tensor, temperature: float) -> Tensor:
    """Return the permutation chosen greedily by largest entries, each row and column once: (…, n, n).

    The gradient is that of Sinkhorn's iteration on exp(logits / temperature), a nearly doubly stochastic matrix.

    >>> permutation(torch.tensor([[3.0, 2.0], [4.0, 1.0]]), 1.0).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    n = logits.shape[-1]
    left, chosen = logits.detach().nan_to_num(), torch.zeros_like(logits, requires_grad=False)
    for _ in range(n):
        largest = left.flatten(-2).argmax(-1, keepdim=True)
        hot = torch.zeros_like(left.flatten(-2)).scatter_(-1, largest, 1).view_as(left)
        chosen = chosen + hot
        # The row and the column of the chosen entry leave the competition; −∞ is never the largest while others are
        # left.
        left = left.masked_fill((hot.sum(-1, keepdim=True) + hot.sum(-2, keepdim=True)) > 0, -torch.inf)
    if not logits.requires_grad:
        return chosen
    soft = logits / temperature
    for _ in range(_SINKHORN):
        # Sinkhorn's iteration in logarithms: rows and columns are scaled in turn to sums of 1.
        soft = soft - soft.logsumexp(-1, keepdim=True)
        soft = soft - soft.logsumexp(-2, keepdim=True)
    return straight_through(chosen, soft.exp())
