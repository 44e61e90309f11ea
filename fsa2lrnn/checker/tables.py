"""The tables of one layer over letters, x_k = A[a_k] x_{k-1} + v[a_k], and the read-out of states, in numpy.

They are read from a safetensors file, as `fsa2lrnn.save` writes it, if the model's gates look them up. A gate looks up
if each of its sums has at most one term, and no bias: then nothing is rounded, in any order. The tables of other models
depend on how a matrix library rounds; the checker refuses these models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from .errors import UnsupportedInput, require
from .files import as_list, parsed, symbol
from .rounding import LARGEST, LONGEST_SUM, FloatFormat

_LAYER = {"kind", "block_sizes", "transition_hidden", "value_hidden", "gate", "temperature"}
_REMEDY = "save its tables, fsa2lrnn.save(fsa2lrnn.nn.switched.as_tables(model), path), and give that file"
Weights = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables and read-out: logits of a state x are W2 relu(W1 y + b1) + b2, y is x or LayerNorm(x), with ε = 10⁻⁵.

    Args:
        numbers: A (|Σ|, H, b, b), v (|Σ|, H, b), x0 (H, b), W1 (m, H·b), b1 (m,), W2 (|Γ|, m), b2 (|Γ|,), and
            norm_weight and norm_bias (H·b,) where there is a LayerNorm.
        dtype: in which the model computes; rounding is bounded for "float32" and "float64".
        alphabet, outputs: Σ and Γ.
    """

    numbers: Mapping[str, np.ndarray]
    dtype: str
    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """All numbers in float64, which represents them exactly."""
        return {name: np.asarray(x, np.float64) for name, x in self.numbers.items()}

    @property
    def sha256(self) -> str:
        """The SHA-256 of all numbers, their shapes and their dtype."""
        digest = hashlib.sha256()
        for name, x in sorted(self.numbers.items()):
            digest.update(f"{name} torch.{self.dtype} {x.shape}".encode())
            digest.update(np.ascontiguousarray(x + np.zeros((), x.dtype)).tobytes())  # −0 and 0 are one number
        return digest.hexdigest()

    def format(self) -> FloatFormat:
        """Return the format that the model computes in.

        Raises:
            UnsupportedInput: for other types than float32 and float64, for a width of zero or over 1,024, and for
                numbers that may overflow or are not finite.
        """
        is_bounded = self.dtype in ("float32", "float64")
        require(is_bounded, f"it computes in {self.dtype}: the bounds on its rounding are for float32 and float64")
        is_narrow = max(*self.weights["W1"].shape, len(self.alphabet)) <= LONGEST_SUM
        require(is_narrow, f"the bounds on rounding are for models of a width up to {LONGEST_SUM:,}")
        empty = ", ".join(name for name, x in self.weights.items() if not x.size)
        require(not empty, f"{empty}: no entries: a model has heads, blocks, hidden units and outputs")
        sums = {name: float(np.abs(x).sum(-1).max()) for name, x in self.weights.items()}
        bad = ", ".join(name for name, size in sums.items() if not size <= LARGEST)
        require(not bad, f"{bad}: sums of over 2^40, or no numbers, may overflow: rescale the model")
        return FloatFormat.of(self.dtype)


def read_tables(path: Path) -> Tables:
    """Return the tables of the model in a file. Raises `UnsupportedInput` for any other file."""
    weights, metadata = opened(path, {"F32", "F64"})
    dtypes = {weight.dtype.name for weight in weights.values()}
    require(len(dtypes) == 1, f"{path} holds numbers of the types {sorted(dtypes)}: one of them is read")
    is_ours = metadata.get("format") == "fsa2lrnn-model" and metadata.get("version") == "1"
    require(is_ours, f"{path} is not a model of fsa2lrnn of version 1")
    config = parsed(metadata.get("config", "null"), f"the configuration of {path}")
    names = ("alphabet", "outputs", "layers", "normalisation", "connection", "layer_norm", "token_shift")
    require(type(config) is dict and set(names) <= set(config), f"{path} has no configuration")
    values: list[Any] = [config[name] for name in names]
    alphabet, outputs, layers, rule, connection, norm, shift = values
    layer: Any = layers[0] if len(as_list(layers)) == 1 and type(layers[0]) is dict else {}
    is_plain = layer.get("kind") == "block" and {"block_sizes"} <= set(layer) <= _LAYER and connection == "chain"
    require(is_plain and shift is False and norm in (False, "readout"), "only models of as_tables(model) are read")
    sizes: list[Any] = as_list(layer["block_sizes"])
    require(all(type(b) is int and 0 < b <= 1024 for b in sizes) and len(set(sizes)) == 1, "blocks have several sizes")
    H, b, letters, n = len(sizes), sizes[0], len(as_list(alphabet)), len(as_list(outputs))
    u = weights.get("embedding.weight", np.zeros(0))
    A, v = (_lookup(weights, f"layers.0.{gate}", u) for gate in ("transition", "value"))
    require(A.shape == (letters, H * b * b) and v.shape == (letters, H * b), "the gates give tables of other sizes")
    A, v = A.reshape(letters, H, b, b), v.reshape(letters, H, b)
    # T2 of docs/theory.md: "clip" does not change columns with at most one nonzero entry, if that is 1 or -1.
    is_fixed = rule == "clip" and bool(np.isin(np.abs(A), (0, 1)).all() and ((A != 0).sum(-2) <= 1).all())
    require(rule == "none" or is_fixed, f"normalisation = {str(rule)[:80]} computes columns: {_REMEDY}")
    m = len(weights.get("readout.0.bias", ()))
    places = {
        "x0": ("layers.0.x0", (H, b)), "W1": ("readout.0.weight", (m, H * b)), "b1": ("readout.0.bias", (m,)),
        "W2": ("readout.2.weight", (n, m)), "b2": ("readout.2.bias", (n,)),
    }  # fmt: skip
    if norm:
        places |= {"norm_weight": ("norms.0.weight", (H * b,)), "norm_bias": ("norms.0.bias", (H * b,))}
    for place, shape in places.values():
        require(place in weights and weights[place].shape == shape, f"{place} is missing, or not of shape {shape}")
    numbers = {"A": A, "v": v} | {name: weights[place] for name, (place, _) in places.items()}
    return Tables(numbers, dtypes.pop(), tuple(map(symbol, alphabet)), tuple(map(symbol, outputs)))


def opened(path: Path, types: set[str]) -> tuple[Weights, dict[str, str]]:
    """Return the tensors of a safetensors file and its metadata. Raises `UnsupportedInput` for other types or files."""
    try:
        with safe_open(path, framework="np") as source:
            kinds = {source.get_slice(name).get_dtype() for name in source.keys()}  # noqa: SIM118
            require(kinds <= types, f"{path} holds numbers of the types {sorted(kinds)}: {sorted(types)} are read")
            return {name: source.get_tensor(name) for name in source.keys()}, source.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as fault:
        raise UnsupportedInput(f"{path} is not a safetensors file ({str(fault)[:200]}): save it again") from None


def _lookup(weights: Weights, name: str, u: np.ndarray) -> np.ndarray:
    """Return the values of a gate, Linear-ReLU-Linear or a table, for each row of u, if no sum has two terms."""
    if f"{name}.table" in weights:
        W1, W2, biases = np.eye(u.shape[-1], dtype=u.dtype), weights[f"{name}.table"], []
    else:
        parts = [f"{name}.{part}" for part in ("0.weight", "2.weight", "0.bias", "2.bias")]
        require(set(parts) <= set(weights), f"{name} has no weights")
        W1, W2, *biases = (weights[part] for part in parts)
    fits = u.ndim == W1.ndim == W2.ndim == 2 and u.shape[1] == W1.shape[1] and W1.shape[0] == W2.shape[1]
    require(fits and not any(bias.any() for bias in biases), f"{name} adds biases, or does not fit: {_REMEDY}")
    # With at most one nonzero entry per row of u and of `hidden`, each sum has one term and rounds at most one product,
    # alike in every order.
    hidden = np.maximum(u @ W1.T, 0)
    has_one_term = all(((x != 0).sum(-1) <= 1).all() for x in (u, hidden))
    require(has_one_term, f"{name} adds up several numbers, which rounds: {_REMEDY}")
    return hidden @ W2.T
