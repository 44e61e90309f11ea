"""Observe RWKV-7 of the package `rwkv`: w, a and the key of each layer, computed from its inputs and its weights.

The package's step is compiled, so its intermediate values cannot be read. But the state contains the last input of
each layer, and the gates follow from two of these inputs and the weights by the same operations, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch.nn.functional import normalize

from fsa2lrnn.errors import CheckpointError, shortened
from fsa2lrnn.extra.huggingface.observed.observer import Take
from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE
from fsa2lrnn.extra.huggingface.observed.values import Measure
from fsa2lrnn.extra.huggingface.rwkv_package import STRATEGIES, RwkvPackage, check_weights, package, quietly, zeros

_LEAST_W = math.exp(-0.606531)


class Rwkv7Observer:
    """The observer of RWKV-7's transitions diag(w) − κ(a∘κ)ᵀ, similar to diag(w) − uuᵀ with u = √a∘κ for a > 0."""

    measures: ClassVar = (
        Measure("w", low=_LEAST_W, marks=(1.0,)),
        Measure("a"),
        Measure("key"),
        Measure(EIGENVALUE, low=-1, marks=(0.0, 1.0)),
    )

    def is_in(self, folder: Path) -> bool:
        return len(list(folder.glob("*.pth"))) == 1 and not (folder / "config.json").exists()

    def open(self, folder: Path) -> Any:
        path = next(folder.glob("*.pth"))
        try:
            weights = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
        except Exception as fault:  # any error of the package's reader on a damaged file
            raise CheckpointError(f"{path} is damaged or no file of weights ({shortened(str(fault))})") from None
        check_weights(path, weights)
        dtype = weights["emb.weight"].dtype
        if dtype not in STRATEGIES:
            raise CheckpointError(
                f"{path}: weights in {dtype}; convert them to float32 or bfloat16, which CPUs compute"
            )
        del weights
        with quietly():
            return package().RWKV_x070(str(path.with_suffix("")), STRATEGIES[dtype])

    def owns(self, model: Any) -> bool:
        return isinstance(getattr(model, "z", None), Mapping | dict) and "blocks.0.att.k_k" in model.z

    def describe(self, model: Any) -> dict[str, str]:
        known = RwkvPackage()
        return {"class": "RWKV_x070", "dtype": known.dtype(model), **known.versions()}

    def n_tokens(self, model: Any) -> int:
        return len(model.z["emb.weight"])

    def heads(self, model: Any) -> dict[int, int]:
        return dict.fromkeys(range(model.n_layer), int(model.n_head))

    def reach(self, model: Any) -> tuple[float, float]:  # noqa: ARG002 - the same for all
        """Return the least eigenvalue exp(−0.606531) − 1, reached with the least w and a = 1, and the largest, 1."""
        return _LEAST_W - 1, 1.0

    def pieces(self, model: Any, longest: int) -> tuple[int, int]:
        fits = max(1, 2**22 // (model.n_layer * model.n_embd))
        return min(fits, 1_024), min(fits, longest)

    @torch.no_grad()
    def read(self, model: Any, tokens: torch.Tensor, take: Take) -> None:
        found: list[list[tuple[torch.Tensor, ...]]] = [[] for _ in range(model.n_layer)]
        with quietly():
            for word in tokens:
                state = zeros(model)
                for token in word.tolist():
                    before = [state[3 * i] for i in range(model.n_layer)]
                    _, state = model.forward([token], state)
                    for i, x_prev in enumerate(before):
                        found[i].append(gates(model.z, i, state[3 * i], x_prev, model.n_head))
        for i, parts in enumerate(found):
            w, a, key = (torch.stack(part).double().numpy() for part in zip(*parts, strict=True))  # (n, heads, N)
            take(i, {
                "w": w.swapaxes(1, 2).reshape(-1, model.n_head),
                "a": a.swapaxes(1, 2).reshape(-1, model.n_head),
                "key": np.linalg.norm(key, axis=2),
                EIGENVALUE: least_eigenvalue(w, a, key),
            })  # fmt: skip


def gates(
    z: Mapping[str, torch.Tensor], layer: int, x: torch.Tensor, x_prev: torch.Tensor, n_heads: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return w, a and κ of one step, (heads, N) each, from the layer's current and previous input, (H,) each."""
    part = {name: z[f"blocks.{layer}.att.{name}"] for name in
            ("x_w", "x_k", "x_a", "w0", "w1", "w2", "a0", "a1", "a2", "k_k", "key.weight")}  # fmt: skip
    xx = x_prev - x
    xw, xk, xa = x + xx * part["x_w"], x + xx * part["x_k"], x + xx * part["x_a"]
    w = torch.tanh(xw @ part["w1"]) @ part["w2"]
    a = torch.sigmoid(part["a0"] + (xa @ part["a1"]) @ part["a2"])
    key = normalize((xk @ part["key.weight"] * part["k_k"]).view(n_heads, -1), dim=-1, p=2.0)
    w = torch.exp(-0.606531 * torch.sigmoid((part["w0"] + w).float()))
    return w.view(n_heads, -1), a.view(n_heads, -1), key


def least_eigenvalue(w: np.ndarray, a: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Return the least eigenvalue of diag(w) − κ(a∘κ)ᵀ by bisection: w, a and key κ (…, N) -> (…).

    It is the λ below the least w with Σ a κ²/(w − λ) = 1, or the least w if no such λ exists.

    >>> float(least_eigenvalue(np.array([0.75, 1.0]), np.array([1.0, 1.0]), np.array([1.0, 0.0])))
    -0.25
    """
    squares = a * key**2
    high = w.min(axis=-1)
    low = high - squares.sum(axis=-1)
    for _ in range(64):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            rises = np.where(squares > 0, squares / (w - middle[..., None]), 0).sum(axis=-1) >= 1
        low, high = np.where(rises, low, middle), np.where(rises, middle, high)
    return low
