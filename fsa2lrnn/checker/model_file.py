"""The tables of a model in a safetensors file, as `fsa2lrnn.save` writes it, if its gates look them up.

A gate looks up where one number at most goes into each of its sums, and no bias: then nothing is rounded, in whatever
order. The tables of other models depend on how a library of matrices rounds; those are refused.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from .errors import UnsupportedInput
from .files import as_list, require, symbol, unique_fields
from .tables import Tables

_DTYPES = {"F32": "float32", "F64": "float64"}
_LAYER = {"kind", "block_sizes", "transition_hidden", "value_hidden", "gate", "temperature"}
_REMEDY = "save its tables, fsa2lrnn.save(fsa2lrnn.lrnn.switched.as_tables(model), path), and give that file"
Weights = dict[str, np.ndarray]


def read_tables(path: Path) -> Tables:
    """Return the tables of the model in a file. Raises `UnsupportedInput` for a file of anything else."""
    weights, dtype, metadata = _opened(path)
    is_ours = metadata.get("format") == "fsa2lrnn-model" and metadata.get("version") == "1"
    require(is_ours, f"{path} is no model of fsa2lrnn of version 1")
    try:
        config: Any = json.loads(metadata.get("config", "null"), object_pairs_hook=unique_fields)
    except (RecursionError, ValueError) as fault:
        raise UnsupportedInput(f"{path} has a configuration that is not JSON ({str(fault)[:200]})") from None
    names = ("alphabet", "outputs", "layers", "normalisation", "connection", "layer_norm", "token_shift")
    require(type(config) is dict and set(names) <= set(config), f"{path} has no configuration")
    values: list[Any] = [config[name] for name in names]
    alphabet, outputs, layers, rule, connection, norm, shift = values
    layer: Any = layers[0] if len(as_list(layers)) == 1 and type(layers[0]) is dict else {}
    is_plain = layer.get("kind") == "block" and {"block_sizes"} <= set(layer) <= _LAYER and connection == "chain"
    require(is_plain and shift is False and norm in (False, "readout"), "only one layer of blocks over letters is read")
    sizes: list[Any] = as_list(layer["block_sizes"])
    require(all(type(b) is int and 0 < b <= 1024 for b in sizes) and len(set(sizes)) == 1, "blocks have several sizes")
    H, b, letters, n = len(sizes), sizes[0], len(as_list(alphabet)), len(as_list(outputs))
    u = weights.get("embedding.weight", np.zeros(0))
    A, v = (_looked_up(weights, f"layers.0.{gate}", u) for gate in ("transition", "value"))
    require(A.shape == (letters, H * b * b) and v.shape == (letters, H * b), "the gates give tables of other sizes")
    A, v = A.reshape(letters, H, b, b), v.reshape(letters, H, b)
    # T2 of docs/theory.md: "clip" leaves columns as they are that are zero but for at most one entry of 1 or -1.
    is_kept = rule == "clip" and bool(np.isin(np.abs(A), (0, 1)).all() and ((A != 0).sum(-2) <= 1).all())
    require(rule == "none" or is_kept, f"normalisation = {str(rule)[:80]} computes columns: {_REMEDY}")
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
    return Tables(numbers, dtype, tuple(map(symbol, alphabet)), tuple(map(symbol, outputs)))


def _opened(path: Path) -> tuple[Weights, str, dict[str, str]]:
    """Tensors by name, their one type and the metadata."""
    try:
        with safe_open(path, framework="np") as source:
            kinds = {source.get_slice(name).get_dtype() for name in source.keys()}  # noqa: SIM118
            is_one = len(kinds) == 1 and kinds <= set(_DTYPES)
            require(is_one, f"{path} holds numbers of the types {sorted(kinds)}: float32 or float64 is read")
            weights = {name: source.get_tensor(name) for name in source.keys()}  # noqa: SIM118
            return weights, _DTYPES[kinds.pop()], source.metadata() or {}
    except (SafetensorError, OSError) as fault:
        raise UnsupportedInput(f"{path} is no safetensors file ({str(fault)[:200]}): save the model again") from None


def _looked_up(weights: Weights, name: str, u: np.ndarray) -> np.ndarray:
    """What a gate Linear-ReLU-Linear, or a table, gives for each row of u, if none of its sums has two terms."""
    if f"{name}.table" in weights:
        W1, W2, biases = np.eye(u.shape[-1], dtype=u.dtype), weights[f"{name}.table"], []
    else:
        parts = [f"{name}.{part}" for part in ("0.weight", "2.weight", "0.bias", "2.bias")]
        require(set(parts) <= set(weights), f"{name} has no weights")
        W1, W2, *biases = (weights[part] for part in parts)
    fits = u.ndim == W1.ndim == W2.ndim == 2 and u.shape[1] == W1.shape[1] and W1.shape[0] == W2.shape[1]
    require(fits and not any(bias.any() for bias in biases), f"{name} adds biases, or does not fit: {_REMEDY}")
    hidden = np.maximum(u @ W1.T, 0)
    has_one_term = all(((x != 0).sum(-1) <= 1).all() for x in (u, hidden))
    require(has_one_term, f"{name} adds up several numbers, which rounds: {_REMEDY}")
    return hidden @ W2.T
