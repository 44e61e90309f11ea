"""Define what a target of `export` declares: how it is planned, built, saved, loaded and run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.export.packages import said
from fsa2lrnn.export.plan import StagePlan

WEIGHTS = "model.safetensors"  # the weights file of most packages
State = tuple[torch.Tensor, ...]  # the tensors by which earlier letters influence later outputs


class Code(Protocol):
    """The interface to write, load and run whole models of a package, with their state between letters.

    A cache is the object from which the package's code continues a word, None before a word; a state is the part of it
    that later calls may read.
    """

    def save(self, model: Any, _alphabet: Sequence[Hashable], _outputs: Sequence[Hashable], folder: Path, /) -> None:
        """Write weights, configuration and (if the package has one) a tokenizer into an existing folder."""
        save_file({name: part.contiguous() for name, part in model.state_dict().items()}, folder / WEIGHTS)

    def weights(self, folder: Path) -> dict[str, torch.Tensor]:
        """Return the weights of a folder, by name; raise `CheckpointError` for a folder without weights."""
        path = folder / WEIGHTS
        try:
            return load_file(path)
        except (SafetensorError, OSError) as fault:
            raise CheckpointError(f"{path} is missing, damaged or no safetensors file ({said(fault)})") from None

    def settings(self, folder: Path) -> dict[str, str]:  # noqa: ARG002 - most packages read the weights alone
        """Return the values other than weights that the package's loaders read from a folder, by name, as text."""
        return {}

    def load(self, folder: Path) -> Any:
        """Load a model as a user of the package does, for evaluation; raise `CheckpointError` for another class."""
        ...

    def describe(self, model: Any) -> str:
        """Return a text on what a proof covers: the model's class, package versions, calls and positions."""
        ...

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages that a claim depends on."""
        ...

    def dtype(self, model: Any) -> str:
        """Return the dtype of the model's weights as text, such as "float32"."""
        return str(next(model.parameters()).dtype).removeprefix("torch.")

    def n_parameters(self, model: Any) -> int:
        """Return the number of parameters of the model."""
        return sum(parameter.numel() for parameter in model.parameters())

    def read(self, model: Any, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """Return the output token after each letter, int64 (T,) -> (T,), and the cache after the last one."""
        ...

    def state(self, model: Any, cache: Any) -> State:
        """Return the part of the cache that later calls may read."""
        ...

    def cache(self, model: Any, state: State) -> Any: ...

    def check(self, model: Any) -> None:
        """Raise `UnsupportedFormat` unless a state of the model determines all later outputs."""


@dataclass(frozen=True)
class Target:
    """A released model into which plans are written.

    Args:
        name: its name on the command line.
        tried: the version of the package with which it was tested.
        code: the interface to run its models.
        plan: a function of a machine that returns a plan, or raises `NotExpressible`.
        build: a function of a plan and a dtype that returns the model.
        layers_a_stage: the number of layers per stage of a plan.
    """

    name: str
    tried: str
    code: Code
    plan: Callable[..., StagePlan]
    build: Callable[[StagePlan, torch.dtype], Any]
    layers_a_stage: int = 1
