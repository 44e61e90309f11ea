"""Save, load and run whole models of the package `rwkv`: a `.pth` file, and states that each call takes and returns.

The package reads RWKV_V7_ON on import and prints while it loads a model. The state of a layer is S and the previous
inputs of its two halves, restricted to the coordinates that a branch mixes in.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from fsa2lrnn.errors import CheckpointError, MissingPackage, UnsupportedFormat, shortened
from fsa2lrnn.extra.huggingface.declared import Code, State
from fsa2lrnn.optional import is_installed, require

_FILE = "model"  # the name of the weights file, to which the package adds .pth
STRATEGIES = {torch.float32: "cpu fp32", torch.bfloat16: "cpu bf16"}
_SQUARE = ("receptance.weight", "key.weight", "value.weight", "output.weight")
_VECTORS = ("x_r", "x_w", "x_k", "x_v", "x_a", "x_g", "w0", "a0", "k_k", "k_a", "r_k", "ln_x.weight", "ln_x.bias")
_SWITCHES = {"RWKV_V7_ON": "1", "RWKV_CUDA_ON": "0"}


class RwkvPackage(Code):
    """The interface to write, load and run models of the class `RWKV_x070`; a cache is the package's list of states."""

    def save(self, model: Any, _alphabet: Sequence[Hashable], _outputs: Sequence[Hashable], folder: Path) -> None:
        torch.save(model, folder / f"{_FILE}.pth")

    def weights(self, folder: Path) -> dict[str, torch.Tensor]:
        path = folder / f"{_FILE}.pth"
        try:
            weights = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
        except (OSError, KeyError, RuntimeError, ValueError, UnpicklingError) as fault:
            raise CheckpointError(f"{path} holds no model of rwkv-7 ({str(fault)[:200]}): export it again") from None
        check_weights(path, weights)
        return weights

    def load(self, folder: Path) -> Any:
        dtype = self.weights(folder)["emb.weight"].dtype
        try:
            with quietly():
                return package().RWKV_x070(str(folder / _FILE), STRATEGIES[dtype])
        except (OSError, KeyError, RuntimeError, ValueError) as fault:
            raise CheckpointError(f"{folder} holds no model of rwkv-7 ({str(fault)[:200]}): export it again") from None

    def versions(self) -> dict[str, str]:
        package()
        return {name: version(name) for name in ("rwkv", "torch")}

    def describe(self, model: Any) -> str:  # noqa: ARG002 - the same for all
        packages = self.versions()
        return f"RWKV_x070 of rwkv {packages['rwkv']} on torch {packages['torch']}, one token a call with its state"

    def dtype(self, model: Any) -> str:
        return str(model.z["emb.weight"].dtype).removeprefix("torch.")

    def n_parameters(self, model: Any) -> int:
        return sum(part.numel() for part in model.z.values())

    def read(self, model: Any, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        state = zeros(model) if cache is None else list(cache)
        with quietly():
            logits, after = model.forward(tokens.tolist(), state, full_output=True)
        return logits.reshape(len(tokens), -1).argmax(dim=1), after

    def state(self, model: Any, cache: Any) -> State:
        parts = list[torch.Tensor]()
        for i in range(model.n_layer):
            mixed = torch.stack([model.z[f"blocks.{i}.att.x_{branch}"] for branch in "rwkvag"]).ne(0).any(dim=0)
            read_again = mixed, model.z[f"blocks.{i}.ffn.x_k"].ne(0)
            letters = (torch.where(m, cache[3 * i + j], 0) + 0.0 for m, j in zip(read_again, (0, 2), strict=True))
            parts += [next(letters), cache[3 * i + 1] + 0.0, next(letters)]
        return tuple(parts)

    def cache(self, model: Any, state: State) -> Any:
        return [part.to(like.dtype) for part, like in zip(state, zeros(model), strict=True)]


def zeros(model: Any) -> list[torch.Tensor]:
    """Return the state before a word, in this model's dtype (the package's function uses that of the last loaded)."""
    H, dtype = model.n_embd, model.z["emb.weight"].dtype
    heads = H // model.head_size, model.head_size, model.head_size
    sizes = [((H,), dtype), (heads, torch.float32), ((H,), dtype)] * model.n_layer
    return [torch.zeros(size, dtype=kind) for size, kind in sizes]


def check_weights(path: Path, weights: Any) -> None:
    """Raise `CheckpointError` unless a file holds all weights of RWKV-7 in shapes that need no broadcasting."""
    if not isinstance(weights, dict) or not all(isinstance(part, torch.Tensor) for part in weights.values()):
        raise CheckpointError(f"{path} is not a table of tensors: give the .pth file of an RWKV-7 model")
    held = sum(part.numel() * part.element_size() for part in weights.values())
    if held > (size := path.stat().st_size):
        raise CheckpointError(f"{path} has {size:,} bytes, and its tensors are {held:,}: download it again")
    faults = list[str]()

    def want(name: str, *shape: int | None) -> tuple[int, ...]:
        """Return the shape of a tensor without axes of 1; None in `shape` allows any length."""
        there = tuple(n for n in weights[name].shape if n != 1) if name in weights else None
        if there is None or len(there) != len(shape) or any(shape[j] not in (None, n) for j, n in enumerate(there)):
            faults.append(f"{name} is missing" if there is None else f"{name} has shape {there}")
            return (0,) * len(shape)
        return there

    n_tokens, H = want("emb.weight", None, None)
    want("head.weight", n_tokens, H)
    for name in ("ln_out.weight", "ln_out.bias", "blocks.0.ln0.weight", "blocks.0.ln0.bias"):
        want(name, H)
    r_k = weights.get("blocks.0.att.r_k")
    if faults:
        raise CheckpointError(f"{path} is not a model of RWKV-7: {'; '.join(faults)}")
    if r_k is None or r_k.ndim != 2 or r_k.numel() != H or 1 in r_k.shape:
        raise CheckpointError(f"{path} has no blocks.0.att.r_k of heads times their size: it is not a model of RWKV-7")
    numbers = {name.split(".")[1] for name in weights if name.startswith("blocks.")}
    if numbers != set(map(str, range(len(numbers)))):
        raise CheckpointError(f"{path}: blocks {shortened(', '.join(sorted(numbers)))} are not numbered from 0 on")
    for i in range(len(numbers)):
        for name in ("ln1.weight", "ln1.bias", "ln2.weight", "ln2.bias", "ffn.x_k"):
            want(f"blocks.{i}.{name}", H)
        for name in _VECTORS if i == 0 else (*_VECTORS, "v0"):
            if name == "r_k":
                want(f"blocks.{i}.att.r_k", *r_k.shape)
            else:
                want(f"blocks.{i}.att.{name}", H)
        for name in _SQUARE:
            want(f"blocks.{i}.att.{name}", H, H)
        for name in "wag" if i == 0 else "wavg":
            _, rank = want(f"blocks.{i}.att.{name}1", H, None)
            want(f"blocks.{i}.att.{name}2", rank, H)
        width, _ = want(f"blocks.{i}.ffn.key.weight", None, H)
        want(f"blocks.{i}.ffn.value.weight", H, width)
    if faults:
        raise CheckpointError(f"{path} is not a model of RWKV-7: {'; '.join(faults[:5])}")


def package() -> Any:
    """Import `rwkv` with RWKV-7 enabled; raise `MissingPackage`, or `UnsupportedFormat` if imported without RWKV-7."""
    if "rwkv.model" not in sys.modules and not is_installed("rwkv"):
        raise MissingPackage("the layer rwkv-7 needs rwkv, which is not installed: pip install rwkv==0.8.32")
    before = {name: os.environ.get(name) for name in _SWITCHES}
    os.environ.update(_SWITCHES)
    try:
        with quietly():
            found = require("rwkv.model", None, "the layer rwkv-7")
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    if not hasattr(found, "RWKV_x070"):
        raise UnsupportedFormat("rwkv was imported without RWKV-7: set RWKV_V7_ON=1 before it is imported")
    return found


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress the package's prints and torch's warnings about torch.jit."""
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
