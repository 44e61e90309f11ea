"""Import the external packages so that they run on a CPU, load models of any weights, and report versions.

A `Target` declares how a released model is planned and built; its `Code` saves, loads and runs it.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from logging import LogRecord
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError, UnsupportedFormat, shortened
from fsa2lrnn.export.plan import StagePlan
from fsa2lrnn.optional import is_installed, require

_MOST_LAYERS = 512  # building a layer takes some milliseconds, before the sizes of its weights are known
_LONGEST_CHUNK = 1_024  # tokens to which Mamba-2 fills up shorter texts
TRIED = "5.24.0"  # the version of transformers with which the layers were tested


@contextmanager
def transformers() -> Iterator[Any]:
    """Import transformers, without its progress bars and its notes that kernels are slow inside the block.

    Its warnings and errors remain visible. Raises `MissingPackage` with the command that installs transformers or
    tokenizers.
    """
    package = require("transformers", "hf", "a layer of others")
    require("tokenizers", "hf", "a layer of others")
    logging = package.utils.logging
    kernels = logging.get_logger("transformers.integrations.hub_kernels")
    has_bars, has_notes = logging.is_progress_bar_enabled(), _is_no_note_on_speed not in kernels.filters
    logging.disable_progress_bar()
    kernels.addFilter(_is_no_note_on_speed)
    try:
        yield package
    finally:
        if has_notes:
            kernels.removeFilter(_is_no_note_on_speed)
        if has_bars:
            logging.enable_progress_bar()


def _is_no_note_on_speed(record: LogRecord) -> bool:
    """Return False for the advice to install a fast kernel: the reference code is what is proved here."""
    return "is falling back to its reference PyTorch implementation" not in record.getMessage()


def modeling(name: str) -> Any:
    """Import the module of an architecture of transformers, such as "mamba2", so that it runs on a CPU.

    If `fla` is installed, transformers would import its kernels, which run on GPUs only. So fla is hidden during the
    import on a machine without a GPU. Raises `UnsupportedFormat` if the installed version has no such module.
    """
    if not is_installed(f"transformers.models.{name}"):
        raise UnsupportedFormat(f"transformers {version('transformers')} has no {name}: install transformers=={TRIED}")
    is_imported = f"transformers.models.{name}.modeling_{name}" in sys.modules
    with _without("fla") if hides_fla() and not is_imported else nullcontext():
        return require(f"transformers.models.{name}.modeling_{name}", "hf", f"the layer {name}")


def hides_fla() -> bool:
    """Return whether fla is installed on a machine without a GPU, so that models must run without it."""
    return is_installed("fla") and not torch.cuda.is_available()


@contextmanager
def _without(package: str) -> Iterator[None]:
    hidden = {key: sys.modules.pop(key) for key in list(sys.modules) if key.partition(".")[0] == package}
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]
        sys.modules.update(hidden)


def versions() -> dict[str, str]:
    """Return the versions of transformers, tokenizers, torch and safetensors, on which proofs depend."""
    return {name: version(name) for name in ("transformers", "tokenizers", "torch", "safetensors")}


def cache_name(model: nn.Module) -> str:
    """Return the name that a model's call and answer have for the cache; from transformers 5.24 on it is "cache"."""
    arguments = inspect.signature(model.forward).parameters
    return next(name for name in ("cache", "cache_params", "past_key_values") if name in arguments)


def described(name: str) -> str:
    """Return a text that names a class of transformers and the versions on which it runs."""
    packages = versions()
    without = ", without fla" if hides_fla() else ""
    return f"{name} of transformers {packages['transformers']} on torch {packages['torch']}{without}"


def said(fault: Exception) -> str:
    """Return the message of an external exception, shortened to one line."""
    return shortened(" ".join(shortened(str(fault), 400).split()) or type(fault).__name__)


def load_body(folder: Path, kind: str, body: str) -> Any:
    """Return the model of class `body` in a folder, in evaluation mode, with memory bounded by the size of its files.

    It runs no code from the folder and reads safetensors only. The model is first built on the meta device, and must
    not have more numbers than its files have bytes. Raises `CheckpointError` for unsuitable files.
    """
    held = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    with transformers():
        made = getattr(modeling(kind), body)
        config = made.config_class.from_pretrained(folder, local_files_only=True)
        with torch.device("meta"):
            empty = made(config) if config.num_hidden_layers <= _MOST_LAYERS else None
        needed = sum(part.numel() for part in (*empty.parameters(), *empty.buffers())) if empty else math.inf
        if needed > held + 2**16:  # tables of frequencies and the like are in no file
            raise CheckpointError(
                f"{folder}: config.json describes {needed:,} numbers (inf: over {_MOST_LAYERS} layers), and there "
                f"are {held:,} bytes of safetensors: one of them is of another model"
            )
        if not 0 < getattr(config, "chunk_size", 1) <= _LONGEST_CHUNK or hasattr(config, "quantization_config"):
            raise CheckpointError(
                f"{folder}: its weights are quantized, or chunk_size is not from 1 to {_LONGEST_CHUNK}: other code "
                "would compute its gates"
            )
        model, info = made.from_pretrained(
            folder, config=config, dtype="auto", local_files_only=True, use_safetensors=True,
            output_loading_info=True, attn_implementation="eager",
        )  # fmt: skip
    if missing := sorted(info["missing_keys"]):
        raise CheckpointError(f"{folder}: the weights lack {', '.join(missing[:3])}")
    return model.eval()


@contextmanager
def refusing(fact: str) -> Iterator[None]:
    """Raise `CheckpointError` for any error of a package's code, which does not validate configurations."""
    try:
        yield
    except Fsa2LrnnError:
        raise
    except Exception as fault:
        raise CheckpointError(f"{fact} ({type(fault).__name__}: {said(fault)}): correct its files") from None


WEIGHTS = "model.safetensors"  # the weights file of most packages
State = tuple[torch.Tensor, ...]  # the tensors by which earlier letters influence later outputs


class Code(Protocol):
    """The interface to write, load and run whole models of a package, with their state between letters.

    A cache is the object from which the package's code continues a word, None before a word; a state is the part of it
    that later calls may read.
    """

    def save(
        self, model: nn.Module, _alphabet: Sequence[Hashable], _outputs: Sequence[Hashable], folder: Path, /
    ) -> None:
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

    def describe(self, model: nn.Module) -> str:
        """Return a text on what a proof covers: the model's class, package versions, calls and positions."""
        ...

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages that a claim depends on."""
        ...

    def dtype(self, model: nn.Module) -> str:
        """Return the dtype of the model's weights as text, such as "float32"."""
        return str(next(model.parameters()).dtype).removeprefix("torch.")

    def n_parameters(self, model: nn.Module) -> int:
        """Return the number of parameters of the model."""
        return sum(parameter.numel() for parameter in model.parameters())

    def read(self, model: nn.Module, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """Return the output token after each letter, int64 (T,) -> (T,), and the cache after the last one."""
        ...

    def state(self, model: nn.Module, cache: Any) -> State:
        """Return the part of the cache that later calls may read."""
        ...

    def cache(self, model: nn.Module, state: State) -> Any: ...

    def check(self, model: nn.Module) -> None:
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
