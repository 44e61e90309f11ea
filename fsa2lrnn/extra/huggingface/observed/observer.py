"""What a layer's file has to offer so that models of others are read: found, loaded, run, with what its gates did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from fsa2lrnn.extra.huggingface.observed.values import Measure

Take = Callable[[int, Mapping[str, np.ndarray]], None]  # a layer's number, and by measure (n, heads)


class Observer(Protocol):
    """Models of one architecture, whoever made them."""

    measures: tuple[Measure, ...]

    def is_in(self, folder: Path) -> bool:
        """Whether a folder holds such a model, by its configuration or the name of its weights."""
        ...

    def open(self, folder: Path) -> Any:
        """The model, in evaluation mode. Raises `CheckpointError` for weights that are not what they say."""
        ...

    def owns(self, model: Any) -> bool:
        """Whether a model that was loaded elsewhere is of this architecture."""
        ...

    def describe(self, model: Any) -> dict[str, str]:
        """Class, dtype and versions."""
        ...

    def n_tokens(self, model: Any) -> int:
        """How many tokens it knows."""
        ...

    def heads(self, model: Any) -> dict[int, int]:
        """How many heads each layer with a state has."""
        ...

    def reach(self, model: Any) -> tuple[float, float]:
        """The least and the largest eigenvalue that what multiplies the state can have."""
        ...

    def pieces(self, model: Any, longest: int) -> tuple[int, int]:
        """How many words of one token are read together, and how many tokens of a text, at most `longest`."""
        ...

    def read(self, model: Any, tokens: torch.Tensor, take: Take) -> None:
        """Words of tokens, int64 (B, T), each from the start; what the gates did is handed over layer by layer."""
        ...


@contextmanager
def replaced(namespace: Any, **functions: Any) -> Iterator[None]:
    """Functions of a module in place of its own, meanwhile."""
    before = {name: getattr(namespace, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(namespace, name, function)
        yield
    finally:
        for name, function in before.items():
            setattr(namespace, name, function)
