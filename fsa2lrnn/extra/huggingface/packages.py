"""Import the external packages so that they run on a CPU, and report their versions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from typing import Any

from fsa2lrnn.errors import UnsupportedFormat, shortened
from fsa2lrnn.optional import is_installed, require

TRIED = "5.23.0"  # the version of transformers with which the layers were tested


@contextmanager
def transformers() -> Iterator[Any]:
    """Import transformers and disable its progress bars inside the block; its warnings remain visible.

    Raises `MissingPackage` with the command that installs transformers or tokenizers.
    """
    package = require("transformers", "hf", "a layer of others")
    require("tokenizers", "hf", "a layer of others")
    logging = package.utils.logging
    has_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield package
    finally:
        if has_bars:
            logging.enable_progress_bar()


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
    import torch

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


def described(name: str) -> str:
    """Return a text that names a class of transformers and the versions on which it runs."""
    packages = versions()
    without = ", without fla" if hides_fla() else ""
    return f"{name} of transformers {packages['transformers']} on torch {packages['torch']}{without}"


def said(fault: Exception) -> str:
    """Return the message of an external exception, shortened to one line."""
    return shortened(" ".join(shortened(str(fault), 400).split()) or type(fault).__name__)
