"""The tensors of a training run by name: weights, optimiser state and random generator states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.lrnn.tensor_file import Shapes

_AVERAGES = ("exp_avg", "exp_avg_sq")  # of Adam


def tensors_of(model: nn.Module, optimiser: torch.optim.Optimizer, **generators: torch.Generator) -> dict[str, Tensor]:
    """Return all tensors: "model.NAME", "optimiser.WEIGHT.NAME", and a state for each generator."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for i, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{i}.{name}": tensor for name, tensor in state.items()}
    return tensors | {name: generator.get_state() for name, generator in generators.items()}


def shapes_of(model: nn.Module, optimiser: torch.optim.Optimizer, **generators: torch.Generator) -> Shapes:
    """Return the shapes and types of `tensors_of` after a step, when Adam has averages of each weight."""
    tensors = tensors_of(model, optimiser, **generators)
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    for i, weight in enumerate(weights):
        tensors |= {f"optimiser.{i}.step": torch.zeros(())}
        tensors |= {f"optimiser.{i}.{name}": weight for name in _AVERAGES}
    return {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}


def put_back(
    tensors: Mapping[str, Tensor], model: nn.Module, optimiser: torch.optim.Optimizer, **generators: torch.Generator
) -> None:
    """Restore the tensors of `tensors_of`. Raises `CheckpointError` for an invalid generator state."""
    own: dict[str, dict[str, Tensor]] = {"model": {}, "optimiser": {}}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind in own:
            own[kind][rest] = tensor
    model.load_state_dict(own["model"])
    states: dict[int, dict[str, Any]] = {}
    for name, tensor in own["optimiser"].items():
        i, _, part = name.partition(".")
        states.setdefault(int(i), {})[part] = tensor
    optimiser.load_state_dict({"state": states, "param_groups": optimiser.state_dict()["param_groups"]})
    try:
        for name, generator in generators.items():
            generator.set_state(tensors[name])
    except RuntimeError as error:
        raise CheckpointError(f"its random numbers can't be resumed ({error}): start afresh") from error
