"""Define the interface by which external models are recognised, loaded and run to observe their gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from fsa2lrnn.extra.huggingface.observed.values import Measure

Take = Callable[[int, Mapping[str, np.ndarray]], None]  # takes a layer's number and the values (n, heads) by measure


class Observer(Protocol):
    """The interface to external models of one architecture."""

    measures: tuple[Measure, ...]

    def is_in(self, folder: Path) -> bool:
        """Return whether a folder holds such a model, by its configuration or the name of its weights."""
        ...

    def open(self, folder: Path) -> Any:
        """Return the model in evaluation mode. Raises `CheckpointError` if its weights contradict the configuration."""
        ...

    def owns(self, model: Any) -> bool:
        """Return whether a loaded model has this architecture."""
        ...

    def describe(self, model: Any) -> dict[str, str]:
        """Return the class, dtype and versions of the model."""
        ...

    def n_tokens(self, model: Any) -> int:
        """Return the size of the model's vocabulary."""
        ...

    def heads(self, model: Any) -> dict[int, int]:
        """Return the number of heads of each layer that has a state, by layer number."""
        ...

    def reach(self, model: Any) -> tuple[float, float]:
        """Return the least and the largest eigenvalue that a transition of the model's layers can have."""
        ...

    def pieces(self, model: Any, longest: int) -> tuple[int, int]:
        """Return how many words of one token, and how many tokens of a text (at most `longest`), fit in one call."""
        ...

    def read(self, model: Any, tokens: torch.Tensor, take: Take) -> None:
        """Read words of tokens, int64 (B, T), each from the start, and pass the gates to `take` layer by layer."""
        ...


@contextmanager
def replaced(namespace: Any, **functions: Any) -> Iterator[None]:
    """Replace functions of a module by others inside the block."""
    before = {name: getattr(namespace, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(namespace, name, function)
        yield
    finally:
        for name, function in before.items():
            setattr(namespace, name, function)
