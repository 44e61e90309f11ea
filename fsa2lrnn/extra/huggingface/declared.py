"""What a layer of others says of itself here, and how its code is spoken to."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

State = tuple[torch.Tensor, ...]  # all that a model keeps of the letters so far and may read again


@dataclass(frozen=True)
class ExternalLayer:
    """A layer, as its own code executes it.

    Args:
        name: as users write it.
        package, model: where its code is; transformers' name of the architecture.
        classes: the layer and the whole model.
        executed: the step, in formulas.
        transition: what multiplies the state, and the range that is reached.
        convolved: which inputs see letters before the current one.
        start: the state before a word.
        saturates: at which logits its gates are exact.
        tried: the versions of the package that it was tried with.
        layers_a_stage: how many of them a stage of a plan takes.
    """

    name: str
    package: str
    model: str
    classes: tuple[str, ...]
    executed: str
    transition: str
    convolved: str
    start: str
    saturates: str
    tried: str
    layers_a_stage: int = 1


class Code(Protocol):
    """How to write, load and run the whole models of a package, with what they keep between letters.

    A cache is what their code goes on from, None before a word; a state is what of it may be read again.
    """

    def save(self, model: Any, alphabet: Sequence[Hashable], outputs: Sequence[Hashable], folder: Path, /) -> None:
        """Weights and configuration, and a tokenizer where the package has some, into a folder that is there."""
        ...

    def weights(self, folder: Path) -> dict[str, torch.Tensor]:
        """Read the weights of a folder, by name. Raises `CheckpointError` for a folder that holds none."""
        ...

    def settings(self, folder: Path) -> dict[str, str]:
        """Return what else the package's loaders take from a folder: all values, by name, as text."""
        ...

    def load(self, folder: Path) -> Any:
        """Load a model as a user of the package does, in evaluation mode. Raises `CheckpointError` for another kind."""
        ...

    def describe(self, model: Any) -> str:
        """What a claim is about: the class, the versions of its packages, which calls of it, at which positions."""
        ...

    def versions(self) -> dict[str, str]:
        """Of the packages that a claim depends on."""
        ...

    def dtype(self, model: Any) -> str:
        """Of its weights: "float32"."""
        ...

    def n_parameters(self, model: Any) -> int:
        """How many numbers its weights are."""
        ...

    def read(self, model: Any, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """The token put out after each of some letters, int64 (T,) -> (T,), and the cache after them."""
        ...

    def state(self, model: Any, cache: Any) -> State:
        """What the cache holds that may be read again."""
        ...

    def cache(self, model: Any, state: State) -> Any:
        """A cache that holds that state."""
        ...

    def check(self, model: Any) -> None:
        """Raises `UnsupportedFormat` unless a state determines all that follows."""
        ...
