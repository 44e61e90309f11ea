"""What searches, extraction and comparison ask of a model: an `LRNN`, or a module of a user's that is wrapped."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn


class LayerState(NamedTuple):
    """What a layer carries from one step to the next."""

    x: Tensor  # (B, H, b), or the index of the one-hot state (B,), or whatever a layer carries: (B, …)
    u: Tensor | None  # under token shift, the layer's last input (B, d)


State = tuple[LayerState, ...]


@runtime_checkable
class Network(Protocol):
    """Tokens (B, T) in, logits (B, T, |Γ|) out, from a state that can be kept: (B, …) tensors."""

    @property
    def alphabet(self) -> tuple[Hashable, ...]:
        """Σ: token i stands for letter i."""
        ...

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """Γ: logit j belongs to output symbol j."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type that it computes in."""
        ...

    @property
    def device(self) -> torch.device:
        """Where it lives."""
        ...

    @property
    def methods(self) -> tuple[str, ...]:
        """The ways that `__call__` can be asked to compute, by name."""
        ...

    @property
    def entries_per_token(self) -> int:
        """Numbers that a step materialises for one token, about: what batches are cut by."""
        ...

    @property
    def is_causal(self) -> bool:
        """Whether an output depends on no later letter, so that words can be read in pieces."""
        ...

    @property
    def is_switched(self) -> bool:
        """Whether it has tables (`switched`)."""
        ...

    def __call__(self, tokens: Tensor, method: str = "auto") -> Tensor:
        """Logits after every prefix."""
        ...

    def advance(self, tokens: Tensor, state: State, method: str = "auto") -> tuple[Tensor, State]:
        """Logits along `tokens` from a state, and the state after them."""
        ...

    def initial_state(self, batch: int = 1) -> State:
        """The state before the first letter."""
        ...

    def initial_logits(self) -> Tensor:
        """Logits on the empty word: (|Γ|,)."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """Its weights."""
        ...
