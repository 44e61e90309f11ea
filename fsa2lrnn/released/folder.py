"""Folders of whole models, which their own packages load; beside the weights stands what they are of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fsa2lrnn.automata.formats.json_file import from_json, to_value
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.files import write_atomically
from fsa2lrnn.reading import parse_json, read_text
from fsa2lrnn.released import layer_file
from fsa2lrnn.released.declared import Code

FORMAT, VERSION = "fsa2lrnn-released-model", 1
FILE = "fsa2lrnn.json"


@dataclass(frozen=True, eq=False)
class Exported:
    """A whole model of others, and the automaton that it was written from.

    Args:
        model: in evaluation mode.
        layer: its name in `released.LAYERS`.
        machine: minimal; tokens are its letters and then `outputs`.
        outputs: each once.
        code: how the model is run.
        digest: SHA-256 of the folder's files, by their names, when it was loaded.
    """

    model: Any
    layer: str
    machine: MooreMachine
    outputs: tuple[Hashable, ...]
    code: Code
    digest: str

    @property
    def dtype(self) -> str:
        """Of the weights: "float32"."""
        return self.code.dtype(self.model)


def save(model: Any, layer: str, plan: Any, folder: Path) -> None:
    """The model, and `fsa2lrnn.json` with its machine. Raises `UnsupportedFormat` for letters without text."""
    code = layer_file(layer).CODE
    code.save(model, plan.machine.alphabet, plan.outputs, folder)
    value = {
        "format": FORMAT,
        "version": VERSION,
        "layer": layer,
        "how": plan.how,
        "written_with": code.versions(),
        "machine": {name: part for name, part in to_value(plan.machine).items() if name != "labels"},
    }
    write_atomically(folder / FILE, (json.dumps(value, indent=1) + "\n").encode())


def described(folder: Path) -> tuple[MooreMachine, str]:
    """The machine and the layer of a folder that `save` wrote. Raises `CheckpointError` for another."""
    path = folder / FILE
    try:
        value = parse_json(read_text(path), str(path))
        form = value["format"], value["version"]
        if form != (FORMAT, VERSION):
            raise CheckpointError(f"{path}: {form[0]!r}, version {form[1]!r}, where {FORMAT!r}, {VERSION}, is read")
        return from_json(json.dumps(value["machine"])), str(value["layer"])
    except (OSError, KeyError, TypeError) as fault:
        raise CheckpointError(
            f"{folder} is no folder that `fsa2lrnn export` wrote ({fault!r}): export it again"
        ) from None


def load(folder: Path) -> Exported:
    """A folder that `save` wrote, loaded as any user of its package would. Raises `CheckpointError` for another."""
    machine, layer = described(folder)
    code: Code | None = layer_file(layer).CODE
    if code is None:
        raise CheckpointError(f"{folder / FILE}: no whole model of {layer} is ever written: export another layer")
    outputs = tuple(dict.fromkeys(machine.outputs))
    found = Exported(code.load(folder), layer, machine, outputs, code, _digest(folder))
    if (n := code.n_tokens(found.model)) != len(machine.alphabet) + len(outputs):
        raise CheckpointError(
            f"{folder}: {n} tokens for {len(machine.alphabet)} letters and {len(outputs)} outputs: export it again"
        )
    if found.dtype not in ("float32", "bfloat16"):
        raise CheckpointError(
            f"{folder}: weights in {found.dtype}; float32 and bfloat16 are what gates were chosen for"
        )
    return found


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        with path.open("rb") as file:
            found.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return found.hexdigest()


@torch.no_grad()
def run(exported: Exported, tokens: Any, chunk: int = 2_048, cache: Any = None) -> tuple[Any, Any]:
    """The token put out after each letter, (T,), and the cache; letters go `chunk` at a time, 1 for decoding.

    Args:
        tokens: int64 tensor (T,).
        cache: of an earlier call, to go on from.
    """
    if not len(tokens):
        return tokens, cache
    found = list[torch.Tensor]()
    for piece in tokens.split(chunk):
        answer, cache = exported.code.read(exported.model, piece, cache)
        found.append(answer)
    return torch.cat(found), cache
