"""Models on disk: one safetensors file, the configuration in its metadata, no pickle.

The metadata name the format and its version and carry a SHA-256 of the tensors.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError
from fsa2lrnn.files import write_atomically
from fsa2lrnn.lrnn.config import LRNNConfig
from fsa2lrnn.lrnn.model import LRNN

FORMAT = "fsa2lrnn-model"
VERSION = 1


def save(model: LRNN, path: str | Path) -> None:
    """Write weights and configuration to one file, atomically; equal models give equal bytes.

    Raises `UnsupportedFormat` for symbols that JSON can't hold, `OSError` as the file system does.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "config": json.dumps(model.config.to_json(), ensure_ascii=False),
        "sha256": _digest(tensors),
    }
    write_atomically(Path(path), _in_order(to_bytes(tensors, metadata)))


def load(path: str | Path) -> LRNN:
    """Read a model that `save` wrote, in the dtype it was saved in, on the CPU.

    Raises `CheckpointError` for a file that is missing, damaged, foreign, incomplete or newer than this version.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"no such file: {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            _check_header(path, metadata)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged or no safetensors file ({error}): save the model again") from error
    try:
        config = LRNNConfig.from_json(json.loads(metadata["config"]))
    except (Fsa2LrnnError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{path} has a configuration that can't be read ({error}): save the model again"
        ) from error
    if metadata.get("sha256") != _digest(tensors):
        raise CheckpointError(f"{path} is damaged: its tensors do not match their checksum; save the model again")
    model = LRNN(config)
    _check_tensors(path, model.state_dict(), tensors)
    model = model.to(next(t.dtype for t in tensors.values() if t.is_floating_point()))
    model.load_state_dict(tensors)
    return model


def _in_order(content: bytes) -> bytes:
    """The same file with its metadata sorted: safetensors writes them in an order that changes from process to process.

    The header, JSON padded with blanks, stands behind its length; tensors are found relative to its end.
    """
    size = int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def _check_header(path: Path, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is a safetensors file of another program (format {metadata.get('format')!r}, not {FORMAT!r}): "
            "fsa2lrnn loads the files that it saved"
        )
    version = metadata.get("version", "")
    if not version.isdecimal() or not 1 <= int(version) <= VERSION:
        raise CheckpointError(
            f"{path} is of format version {version!r}, and this fsa2lrnn reads up to {VERSION}: update fsa2lrnn"
        )


def _check_tensors(path: Path, wanted: dict[str, Tensor], found: dict[str, Tensor]) -> None:
    faults = [f"{name} is missing" for name in wanted if name not in found]
    faults += [f"{name} is unknown" for name in found if name not in wanted]
    faults += [
        f"{name} has shape {tuple(found[name].shape)} in place of {tuple(wanted[name].shape)}"
        for name in wanted
        if name in found and found[name].shape != wanted[name].shape
    ]
    floats = {t.dtype for t in found.values() if t.is_floating_point()}
    if len(floats) != 1:
        faults.append(f"its floating-point types are {sorted(map(str, floats))}, not one")
    if faults:
        raise CheckpointError(f"{path} does not hold the weights its configuration asks for: {'; '.join(faults[:5])}")


def _digest(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        flat = tensors[name].contiguous().reshape(-1)
        digest.update(f"{name} {flat.dtype} {tuple(tensors[name].shape)}\n".encode())
        digest.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
    return digest.hexdigest()
