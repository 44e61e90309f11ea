"""Models on disk: one safetensors file, the configuration in its metadata, no pickle (`tensor_file`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch

from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.layer_checks import check_layers
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.tensor_file import FileFormat, Shapes, check_shapes, open_tensors, state_shapes, write_tensors
from fsa2lrnn.reading import parse_json

FORM = FileFormat("fsa2lrnn-model", 1)


def save(model: LRNN, path: str | Path) -> None:
    """Write weights and configuration to one file, atomically; equal models give equal bytes.

    Raises `UnsupportedFormat` for a model that is not an `LRNN` and for symbols that JSON cannot hold, and `OSError`.
    """
    if not isinstance(model, LRNN):
        raise UnsupportedFormat(
            f"{type(model).__name__} is not an LRNN, whose configuration and weights the file holds: write a module of "
            "your own with torch.save, or save the LRNN that `compile_machine`, `train` or `learn` made"
        )
    config = json.dumps(model.config.to_json())
    write_tensors(Path(path), FORM, model.state_dict(), {"config": config})


def load(path: str | Path) -> LRNN:
    """Return the model that `save` wrote to a file, in the dtype it was saved in, on the CPU.

    Memory for the configured sizes is allocated only after they agree with the file's tensors.

    Raises:
        CheckpointError: for a file that is missing, damaged, incomplete, of another program or of another version.
        FalseDeclaration: for a user-defined layer that computes other than it declares (`check_layers`).
    """
    path = Path(path)
    with open_tensors(path, FORM) as file:
        config = _config(path, file.metadata)
        dtype = _one_float(path, file.shapes)
        expected = {
            name: (shape, dtype if kind.is_floating_point else kind)
            for name, (shape, kind) in state_shapes(lambda: LRNN(config)).items()
        }
        check_shapes(str(path), expected, file.shapes)
        tensors = file.tensors()
    model = LRNN(config).to(dtype)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:  # an index table with entries out of range
        fault = " ".join(str(error).split())
        raise CheckpointError(f"{path} holds weights that no model has ({fault}): save the model again") from error
    check_layers(model)
    return model


def _one_float(path: Path, shapes: Shapes) -> torch.dtype:
    kinds = {kind for _, kind in shapes.values() if kind.is_floating_point}
    if len(kinds) != 1:
        raise CheckpointError(
            f"{path} does not hold the weights its configuration asks for: its floating-point types are "
            f"{sorted(map(str, kinds))}, not one: convert all to one (model.to(torch.float32)), and save that"
        )
    return kinds.pop()


def _config(path: Path, metadata: Mapping[str, str]) -> LRNNConfig:
    try:
        if "config" not in metadata:
            raise CheckpointError("it has none")
        return LRNNConfig.from_json(parse_json(metadata["config"], "the configuration"))
    except Fsa2LrnnError as error:
        raise CheckpointError(
            f"{path} has a configuration that cannot be read ({error}): save the model again"
        ) from error
