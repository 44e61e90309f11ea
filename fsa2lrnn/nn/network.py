"""The protocol of models that searches, extraction and comparison use."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn


class LayerState(NamedTuple):
    """The state of one layer between two steps."""

    x: Tensor  # (B, H, b), the index of the one-hot state (B,), or another tensor (B, …)
    u: Tensor | None  # under token shift, the layer's last input (B, d)


State = tuple[LayerState, ...]


@runtime_checkable
class Network(Protocol):
    """The protocol of `LRNN`, which documents the members, and `Wrapped`: tokens (B, T) -> logits (B, T, |Γ|)."""

    @property
    def alphabet(self) -> tuple[Hashable, ...]: ...
    @property
    def outputs(self) -> tuple[Hashable, ...]: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def methods(self) -> tuple[str, ...]: ...
    @property
    def entries_per_token(self) -> int: ...
    @property
    def is_causal(self) -> bool: ...
    @property
    def is_switched(self) -> bool: ...
    def __call__(self, tokens: Tensor, method: str = "auto") -> Tensor: ...
    def advance(self, tokens: Tensor, state: State, method: str = "auto") -> tuple[Tensor, State]: ...
    def initial_state(self, batch: int = 1) -> State: ...
    def initial_logits(self) -> Tensor: ...
    def parameters(self) -> Iterator[nn.Parameter]: ...
