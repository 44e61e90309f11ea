"""Whole models of the package `xlstm`: one sLSTM block, its weights as safetensors, run by the model's own `step`.

`xLSTMLMModel.forward` gives no state back, so words are read one token a call, by the cell that they call "vanilla".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from fsa2lrnn.errors import CheckpointError, MissingPackage
from fsa2lrnn.extra.huggingface.declared import State
from fsa2lrnn.extra.huggingface.observed.loading import check_like, tensors
from fsa2lrnn.optional import is_installed, require

_FILE = "model.safetensors"
_BLOCK, _KEPT = "block_0", "slstm_state"  # their names


class XlstmPackage:
    """How `xLSTMLMModel` is written, loaded and run; a cache is what its `step` gives back."""

    def save(self, model: Any, _alphabet: Sequence[Hashable], _outputs: Sequence[Hashable], folder: Path) -> None:
        """Weights; the sizes that the model is made with are theirs."""
        save_file({name: part.contiguous() for name, part in model.state_dict().items()}, folder / _FILE)

    def weights(self, folder: Path) -> dict[str, torch.Tensor]:
        """Read the tensors. Raises `CheckpointError` for another file."""
        return tensors(folder / _FILE)

    def settings(self, folder: Path) -> dict[str, str]:  # noqa: ARG002 - there is no other file
        """Return none: the sizes are those of the weights, and all else is as `made` has it."""
        return {}

    def load(self, folder: Path) -> Any:
        """Raises `CheckpointError` for other weights."""
        weights = self.weights(folder)
        try:
            sizes = weights["token_embedding.weight"].shape
            with torch.device("meta"):  # R has four times the square of the width, so it is looked at first
                check_like(str(folder / _FILE), "xLSTMLMModel", made(*sizes), weights)
            model = made(*sizes)
            model.load_state_dict(weights)
        except CheckpointError:
            raise
        except (KeyError, RuntimeError, TypeError, ValueError) as fault:
            raise CheckpointError(f"{folder} holds no model of slstm ({str(fault)[:200]}): export it again") from None
        return model

    def versions(self) -> dict[str, str]:
        """Of xlstm and torch."""
        _module()
        return {name: version(name) for name in ("xlstm", "torch")}

    def describe(self, model: Any) -> str:  # noqa: ARG002 - the same for all
        """Class, versions, and which calls."""
        known = self.versions()
        return f"xLSTMLMModel of xlstm {known['xlstm']} on torch {known['torch']}, one token a call of its step"

    def dtype(self, model: Any) -> str:
        """Of the weights."""
        return str(model.token_embedding.weight.dtype).removeprefix("torch.")

    def n_parameters(self, model: Any) -> int:
        """How many numbers the weights are."""
        return sum(parameter.numel() for parameter in model.parameters())

    def read(self, model: Any, tokens: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        """Tokens put out, (T,) -> (T,), and the state."""
        found = list[torch.Tensor]()
        for token in tokens:
            logits, cache = model.step(token[None, None], None if cache is None else dict(cache))
            found.append(logits[0, 0].argmax())
        return torch.stack(found), cache

    def state(self, _model: Any, cache: Any) -> State:
        """y, c, n and m, (4, 1, D)."""
        return (cache[_BLOCK][_KEPT] + 0.0,)

    def cache(self, _model: Any, state: State) -> Any:
        """The state as they take it."""
        return {_BLOCK: {"conv_state": None, _KEPT: state[0].clone()}}

    def check(self, model: Any) -> None:
        """Nothing to look at: they keep no more than the state."""


def made(n_tokens: int, width: int) -> Any:
    """An `xLSTMLMModel` of one sLSTM block with one head, in evaluation mode."""
    code = _module()
    layer = code.sLSTMLayerConfig(
        backend="vanilla",
        num_heads=1,
        conv1d_kernel_size=0,
        dtype="float32",
        enable_automatic_mixed_precision=False,
    )
    config = code.xLSTMLMModelConfig(
        vocab_size=n_tokens,
        embedding_dim=width,
        num_blocks=1,
        slstm_block=code.sLSTMBlockConfig(slstm=layer, feedforward=None),
        slstm_at=[0],
    )
    return code.xLSTMLMModel(config).eval()


def _module() -> Any:
    """The package. Raises `MissingPackage` with the line that installs it."""
    if not is_installed("xlstm"):
        raise MissingPackage(
            "the layer slstm needs xlstm, which is not installed: pip install --no-deps xlstm==2.0.6 "
            "mlstm_kernels==2.0.6, which is all that it imports here"
        )
    return require("xlstm", None, "the layer slstm")
