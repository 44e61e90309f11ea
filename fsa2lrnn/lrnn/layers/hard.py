"""What layers share whose transitions are chosen from finitely many, the largest logit's, with a softmax's gradient.

The rule is that of one-hot columns (`normalise.one_hot_rows`), the choices are others: forward the numbers of the
largest logit, in training as in evaluation; backward those that softmax(logits/τ) gives on average.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.closed import exchanges_closed, is_signed
from fsa2lrnn.lrnn.gate import check_kind, new_gate, one_hot_letters
from fsa2lrnn.lrnn.layers.base import LayerConfig, Shape, check_width
from fsa2lrnn.lrnn.layers.block import AffineLayer
from fsa2lrnn.lrnn.normalise.onehot import TEMPERATURE, check_temperature
from fsa2lrnn.lrnn.rounding import RoundedNumbers


@dataclass(frozen=True)
class HardConfig(LayerConfig):
    """`heads` blocks of `size` numbers; their logits come from a gate Linear–ReLU–Linear of `hidden` units (`gate`
    "relu"), or are free numbers for each unit vector that is read, in a first layer for each letter ("table").
    `temperature` is that of the softmax, backward.
    """

    heads: int
    gate: str = "relu"
    hidden: int = 64
    temperature: float = TEMPERATURE

    COUNTS: ClassVar[tuple[str, ...]] = ("heads", "hidden")

    def __post_init__(self) -> None:
        for name in self.COUNTS:
            if type(value := getattr(self, name)) is not int or value < 1:
                raise UnsupportedFormat(f"{name} = {value!r}: {type(self).__name__} needs a positive whole number")
        check_width(self.width)
        check_kind(self.gate)
        check_temperature(self.temperature)

    @property
    def block(self) -> int:
        """Numbers of a block."""
        return 1

    @property
    def width(self) -> int:
        """H·b."""
        return self.heads * self.block

    @property
    def logits(self) -> int:
        """How many a block takes."""
        raise NotImplementedError

    @property
    def entries(self) -> int:
        """The logits, H·b² of A(u), or the gate's hidden units."""
        return max(self.heads * self.logits, self.width * self.block, self.hidden)

    @classmethod
    def of_shape(cls, shape: Shape, options: Mapping[str, Any]) -> Self:
        """So many heads. Raises `UnsupportedFormat` for an option that there is not."""
        cls.refuse_unknown(options)
        return cls(shape.heads, **options)


class HardLayer(AffineLayer):
    """Transitions that exchange the numbers −1, 0 and 1 and write such (T51); `chosen` says which the logits choose."""

    def __init__(self, width_in: int, config: Any) -> None:
        self.temperature = config.temperature
        gate = new_gate(config.gate, width_in, config.hidden, config.heads * config.logits)
        super().__init__((config.block,) * config.heads, gate, None)

    @classmethod
    def embedding(cls, config: Any, n_letters: int, dim: int) -> nn.Module:
        """Letters one-hot, and not to be trained, for a table gate."""
        is_table = config.gate == "table"
        return one_hot_letters(n_letters, dim) if is_table else super().embedding(config, n_letters, dim)

    @classmethod
    def is_finite(cls, rule: str) -> bool:
        """Whatever the column rule, which is for blocks that a gate writes out."""
        return True

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """A and v: (…, H, n) -> (…, H, b, b), (…, H, b)."""
        raise NotImplementedError

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        """The logits by what is chosen with them, of each the largest: (…, H, n) -> (…, H, k, c), any number."""
        raise NotImplementedError

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """A(u) and v(u): (…, d) -> (…, H, b, b) and (…, H, b)."""
        return self.chosen(self.transition(u).unflatten(-1, (self.n_heads, -1)))

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Exact, but for blocks in which rounding can change what is chosen: there any entry may be off by two."""
        logits = self.transition.rounded(u).unflatten((self.n_heads, -1))
        A, v = self.chosen(logits.mid)
        off = 2 * self._is_open(logits).to(v.dtype).unsqueeze(-1)  # (…, H, 1)
        return (
            RoundedNumbers(A, off.unsqueeze(-1).expand_as(A).clone(), u.kind),
            RoundedNumbers(v, off.expand_as(v).clone(), u.kind),
        )

    def _is_open(self, logits: RoundedNumbers) -> Tensor:
        """Return whether another logit may be the largest in some evaluation: (…, H, n) -> bool (…, H)."""
        is_open = torch.zeros(logits.mid.shape[:-1], dtype=torch.bool)
        for mid, off in zip(self.options(logits.mid), self.options(logits.off), strict=True):
            columns = RoundedNumbers(mid.unsqueeze(-1), off.unsqueeze(-1), logits.kind)
            hot = columns.largest(torch.ones(mid.shape[-1], 1, dtype=torch.bool))
            is_open |= (hot.off != 0).flatten(-3).any(-1)
        return is_open

    def is_lookup(self, u: Tensor) -> bool:
        """Whether the gate looks up: to choose rounds nothing."""
        return all(gate.is_lookup(u) for _, gate in self.gates)

    def starts_exact(self) -> bool:
        """Whether x₀ is of −1, 0 and 1."""
        return is_signed(self.initial_state(1))

    def is_exact(self, u: Tensor, limit: float) -> bool:
        """It is enough that rounding changes no choice."""
        A, v = self.rounded_tables(RoundedNumbers.exact(u))
        return A.is_exact and v.is_exact and exchanges_closed(A.mid, v.mid)
