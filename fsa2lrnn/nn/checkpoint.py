"""Models and other tensors on disk: one safetensors file, with its format, version and configuration in the metadata.

No pickle. `TensorFile.shapes` are read from the header before any tensor, so that a reader can compare them with the
expected shapes and allocate nothing where they differ. A SHA-256 of the tensors shows damage.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn
from torch.nn import init
from torch.overrides import TorchFunctionMode

from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError, MissingFile, UnsupportedFormat
from fsa2lrnn.files import write_atomically
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.layer_checks import check_layers
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.reading import parse_json, shown


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
        MissingFile: for a file that does not exist; it is a `FileNotFoundError`.
        CheckpointError: for a file that is damaged, incomplete, of another program or of another version.
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
        raise CheckpointError(f"{path} has a configuration that cannot be read: {error}") from error


_OF_TENSORS = ("normal_", "uniform_", "random_", "exponential_")
_OF_MODULES = ("normal_", "uniform_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_")
_FILLING = frozenset([getattr(torch.Tensor, name) for name in _OF_TENSORS] + [getattr(init, n) for n in _OF_MODULES])
_DRAWING = frozenset((torch.randn, torch.rand))
_COMPARING = frozenset((torch.Tensor.__lt__, torch.Tensor.lt, torch.lt))


class _ShapeOnlyMode(TorchFunctionMode):
    """A mode that returns empty tensors where the meta device would import torch's compiler to compute shapes.

    For these operations torch has definitions in Python only, and that import takes longer than the rest of loading a
    model. All other operations are passed on.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if func in _FILLING:
            return args[0] if args else given["tensor"]
        if func in _DRAWING:
            return torch.empty(*args, **{name: value for name, value in given.items() if name != "generator"})
        if func is torch.arange and not given and all(isinstance(end, int) for end in args):
            return torch.empty(len(range(*args)), dtype=torch.int64)
        if func in _COMPARING and not given:
            return torch.empty(np.broadcast_shapes(*(np.shape(side) for side in args)), dtype=torch.bool)
        return func(*args, **given)


@contextmanager
def on_meta_device() -> Iterator[None]:
    """Create all tensors within the context on the meta device, that is, without memory.

    >>> with on_meta_device():
    ...     layer = torch.nn.Linear(1 << 20, 1 << 20)
    >>> layer.weight.device.type, tuple(layer.weight.shape)
    ('meta', (1048576, 1048576))
    """
    with torch.device("meta"), _ShapeOnlyMode():
        yield


# The safetensors types of models and optimisers that this library writes.
DTYPES = {
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
    "I64": torch.int64,
    "U8": torch.uint8,
}


Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]


class FileFormat(NamedTuple):
    """The name of a file format and its version: the one that is written, and the only one that is read."""

    name: str
    version: int


FORM = FileFormat("fsa2lrnn-model", 1)
# What the files of other formats of ours hold, and what reads them.
_OTHERS = {
    FORM.name: "a model: fsa2lrnn.load reads it",
    "fsa2lrnn-stream": "the state of a stream: fsa2lrnn.Stream(model).load reads it",
    "fsa2lrnn-run": "the checkpoint of a run: `train` with its folder continues it",
    "fsa2lrnn-learning": "the checkpoint of a run: `learn` with its folder continues it",
    "fsa2lrnn-equivalence-certificate": "a proof: `python -m fsa2lrnn.checker` checks it",
}


class TensorFile(NamedTuple):
    """An open file with its metadata, and the shape and dtype of each tensor by name, as read from its header."""

    metadata: dict[str, str]
    shapes: Shapes
    path: Path
    source: Any

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors, on the CPU; raise `CheckpointError` if they do not match their checksum."""
        tensors = {name: self.source.get_tensor(name) for name in self.shapes}
        if self.metadata.get("sha256") != digest(tensors):
            raise CheckpointError(
                f"{self.path} is damaged: its tensors do not match their checksum; save the model again"
            )
        return tensors


def write_tensors(path: Path, form: FileFormat, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata to one file, atomically; equal contents give equal bytes. Raises `OSError`."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": form.name, "version": str(form.version), **metadata, "sha256": digest(plain)}
    write_atomically(path, _in_order(to_bytes(plain, header)))


def _in_order(content: bytes) -> bytes:
    """Return the same file with its metadata sorted, since safetensors writes them in varying order.

    The header, JSON padded with blanks, follows its length; the offsets of tensors are relative to its end.
    """
    size = int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    # safetensors pads its header so that tensors begin at a multiple of 8 bytes.
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


@contextmanager
def open_tensors(path: Path, form: FileFormat) -> Iterator[TensorFile]:
    """Open a file of tensors, which must be of this format and version.

    Raises `MissingFile`, and `CheckpointError`, within the `with` block too, for a file that is damaged, or of another
    format or version.
    """
    if path.is_dir():
        raise CheckpointError(f"{path} is a folder: {_in_folder(path)}")
    if not path.is_file():
        raise MissingFile(f"no such file: {path}")
    try:
        with safe_open(path, framework="pt") as source:
            metadata = source.metadata() or {}
            _check_header(path, metadata, form)
            shapes = {name: _shape(path, name, source.get_slice(name)) for name in source.keys()}  # noqa: SIM118
            yield TensorFile(metadata, shapes, path, source)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is damaged or no safetensors file ({str(error)[:200]}): save the model again"
        ) from error


def _in_folder(path: Path) -> str:
    """Return the remedy for a folder where a file of tensors is expected."""
    if (path / "fsa2lrnn.json").is_file():
        return "`export` wrote it, and fsa2lrnn.export.folder.load reads it"
    files = sorted(path.glob("*.safetensors")) or sorted(path.glob("*/*.safetensors"))
    return f"give a file in it, such as {files[0]}" if files else "give a file (.safetensors)"


def state_shapes(make: Callable[[], nn.Module]) -> Shapes:
    """Return the shapes and dtypes of the state dict of the module that `make` builds, without allocating it.

    Raises `CheckpointError` for sizes that no tensor can have.
    """
    try:
        with on_meta_device():
            model = make()
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"the configuration has weights that cannot be made ({str(error)[:200]})") from error
    return {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in model.state_dict().items()}


def check_shapes(origin: str, expected: Shapes, stored: Shapes) -> None:
    """Raise `CheckpointError` unless the stored tensors have the expected names, shapes and dtypes.

    float16 is refused in place of float32: its numbers are not those of the model that was verified or trained.
    """
    faults = [f"{name} is missing" for name in expected if name not in stored]
    faults += [f"{shown(name)[1:-1]} is unknown" for name in stored if name not in expected]
    for name in [name for name in expected if name in stored]:
        (shape, dtype), (actual, kind) = expected[name], stored[name]
        if actual != shape:
            faults.append(f"{name} has shape {actual} in place of {shape}")
        if kind != dtype:
            both_round = kind.is_floating_point and dtype.is_floating_point
            remedy = f", convert it (tensor.to({dtype})) and save it" if both_round else ""
            faults.append(f"{name} is of {kind} in place of {dtype}{remedy}")
    if faults:
        raise CheckpointError(f"{origin} does not hold the weights its configuration asks for: {'; '.join(faults[:5])}")


def _shape(path: Path, name: str, header: Any) -> tuple[tuple[int, ...], torch.dtype]:
    if header.get_dtype() not in DTYPES:
        raise CheckpointError(
            f"{path}: {shown(name)} is of type {header.get_dtype()}, which no file of ours has: save the model again"
        )
    return tuple(header.get_shape()), DTYPES[header.get_dtype()]


def _check_header(path: Path, metadata: Mapping[str, str], form: FileFormat) -> None:
    """Raise `CheckpointError` unless the metadata name this format and its version."""
    if (other := _OTHERS.get(metadata.get("format", ""))) and metadata["format"] != form.name:
        raise CheckpointError(f"{path} holds {other}")
    if metadata.get("format") != form.name:
        raise CheckpointError(
            f"{path} is a safetensors file of another program (format {shown(metadata.get('format'))}, not "
            f"{form.name!r}): fsa2lrnn loads the files that it saved"
        )
    if metadata.get("version") != str(form.version):
        raise CheckpointError(
            f"{path} is of format version {shown(metadata.get('version', ''))}, and this fsa2lrnn reads up to "
            f"{form.version}: update fsa2lrnn"
        )


def digest(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """Return the SHA-256 of a text and of all tensors: their names, types, shapes and entries."""
    hashed = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        hashed.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        hashed.update(tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return hashed.hexdigest()
