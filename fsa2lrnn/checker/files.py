"""Certificates and automata in JSON files, and models in safetensors files. Each field is checked before it is used.

Arrays are base64 of their compressed entries, little-endian, float32 where that loses nothing. A few bytes can claim to
unpack to gigabytes. So a reader allows an array sixteen times its written size, and all arrays of a file `SPARE` bytes
beyond that; a writer that compresses better writes the entries uncompressed.

The tables of a model are read from a file as `fsa2lrnn.save` writes it, if the model's gates look them up. A gate looks
up if each of its sums has at most one term, and no bias: then nothing is rounded, in any order. The tables of other
models depend on how a matrix library rounds; the checker refuses these models.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Hashable
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from .claims import Claim, Sets, Tables, Tail, Tube
from .errors import UnsupportedInput, require

RATIO = 16
SPARE = 16 << 20
_MOST_AXES = 8
_KINDS = {"bool": np.bool_, "int64": np.int64, "float32": np.float64, "float64": np.float64}  # as written, as read


@dataclass(frozen=True, eq=False)
class Automaton:
    """A complete deterministic Moore machine: delta int64 (|Σ|, n), an output for each state."""

    alphabet: tuple[Hashable, ...]
    delta: np.ndarray
    outputs: tuple[Hashable, ...]
    start: int


@dataclass(frozen=True, eq=False)
class SetCertificate:
    """A certificate as read from a file, whose claim is by sets (`claims.Claim`) or by pairs (`pairs.Pairs`)."""

    claim: Any
    dtype: str
    slack: float
    sha256: str
    machine: Automaton
    ignore: tuple[Hashable, ...]


def parsed(source: Path | str, where: object) -> Any:
    """Return the value of a JSON file or text. Raises `UnsupportedInput` if it is damaged or names a field twice."""
    try:
        text = source.read_bytes() if isinstance(source, Path) else source
        return json.loads(text, object_pairs_hook=_unique_fields)
    except (OSError, RecursionError, ValueError) as fault:
        raise UnsupportedInput(f"{where} cannot be read as JSON ({str(fault)[:200]})") from None


def read_certificate(path: Path) -> SetCertificate:
    """Return the certificate in a JSON file. Raises `UnsupportedInput` unless it is one by sets of this version."""
    value = parsed(path, path)
    names = ("format", "version", "horizon", "margins", "method", "dtype", "scans", "slack", "sha256", "machine")
    form, version, horizon, margins, method, dtype, scans, slack, sha256, machine, tube, ignore = fields(
        value, "the certificate", *names, "tube", "ignore"
    )
    is_ours = form == "fsa2lrnn-horizon-certificate" and version == 1 and method == "sets"
    require(is_ours, f"{path}: {form!r:.80}, version {version!r:.80}, method {method!r:.80} cannot be read here")
    unpack = Unpacking().unpack
    for name, number, kinds in (("horizon", horizon, (int, type(None))), ("slack", slack, (int, float))):
        require(type(number) in kinds and (number is None or 0 <= number < 2.0**1000), f"{name} = {number!r:.80}")
    require(all(type(name) is str for name in (dtype, sha256)), "dtype and sha256 are texts")
    require(all(type(name) is str for name in as_list(scans)) and len(scans) == len(set(scans)) > 0, "scans are names")
    margins = unpack(margins, "margins")
    require(margins.ndim == 1 and margins.dtype == np.float64, f"margins of shape {margins.shape} are not a vector")
    ignored = tuple(symbol(output) for output in as_list(ignore))
    claim = Claim(horizon, margins, tuple(scans), _part(Tube, tube, unpack))
    return SetCertificate(claim, dtype, float(slack), sha256, automaton(machine, "the certificate's machine"), ignored)


def read_automaton(path: Path) -> Automaton:
    """Return the automaton in a file. Raises `UnsupportedInput` unless it is in fsa2lrnn's JSON format."""
    return automaton(parsed(path, path), str(path))


def automaton(value: Any, where: str) -> Automaton:
    """Return the automaton of a JSON value in fsa2lrnn's format. Raises `UnsupportedInput` for any other value."""
    require(type(value) is dict and value.get("format") == "fsa2lrnn-machine", f"{where} is not a fsa2lrnn automaton")
    plain = {name: part for name, part in value.items() if name != "labels"}
    _, version, *parts, start = fields(plain, where, "format", "version", "alphabet", "outputs", "delta", "start")
    letters, outputs, rows = map(as_list, parts)
    n = len(outputs)
    is_table = len(rows) == len(letters) > 0 and all(len(as_list(row)) == n > 0 for row in rows)
    is_table = is_table and all(type(q) is int and 0 <= q < n for row in (*rows, [start]) for q in row)
    require(version == 1 and is_table, f"{where} is of another version, or delta or start name no states")
    alphabet = tuple(map(symbol, letters))
    require(len(set(alphabet)) == len(alphabet), f"{where}: a letter stands twice in the alphabet")
    return Automaton(alphabet, np.array(rows, np.int64), tuple(map(symbol, outputs)), start)


def _part(kind: type, value: Any, unpack: Any) -> Any:
    """Return a `Tube`, `Sets` or `Tail` from a JSON object of its fields: arrays, whole numbers and further parts."""
    names = [field.name for field in dataclass_fields(kind)]
    parts = dict(zip(names, fields(value, kind.__name__, *names), strict=True))
    for name, part in parts.items():
        if name in ("stored", "tail"):
            parts[name] = tuple(_part(Sets if name == "stored" else Tail, each, unpack) for each in as_list(part))
        elif name == "sets":
            parts[name] = _part(Sets, part, unpack)
        elif name in ("memory", "frame_memory", "start", "length", "steps"):
            is_number = (type(part) is int and abs(part) < 2**63) or (name == "steps" and part is None)
            require(is_number, f"{name} = {part!r:.80} is not an integer")
        else:
            parts[name] = unpack(part, name)
    return kind(**parts)


def symbol(value: object) -> Any:
    """Return a letter or an output as a hashable object. Raises `UnsupportedInput` for a value that is not a symbol.

    Numbers, booleans and tuples are returned with their types, since 1, 1.0 and True are equal in Python.
    """
    if type(value) is dict and len(value) == 1:
        ((tag, items),) = value.items()
        if tag in ("tuple", "frozenset"):
            return tag, (tuple if tag == "tuple" else frozenset)(map(symbol, as_list(items)))
    is_symbol = value is None or type(value) in (str, bool) or (type(value) is int and value.bit_length() < 64)
    require(is_symbol or (type(value) is float and value == value), f"{value!r:.80} is not a symbol")
    return value if value is None or type(value) is str else (type(value).__name__, repr(value))


def fields(value: Any, where: str, *names: str) -> list[Any]:
    """Return the values of these fields of a JSON object. Raises `UnsupportedInput` if it lacks one or has others."""
    require(type(value) is dict, f"{where} is not an object")
    odd = sorted(map(str, set(names) ^ set(value)))
    require(not odd, f"{where}: {', '.join(odd)[:200]} missing or too many: expected are {', '.join(names)}")
    return [value[name] for name in names]


def as_list(value: Any) -> list[Any]:
    require(type(value) is list, f"{str(value)[:80]} is not a list")
    return value


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "a field stands twice in one object")
    return dict(pairs)


class Unpacking:
    """A reader of the arrays of one file that bounds their total size in bytes."""

    def __init__(self) -> None:
        self._left = SPARE

    def unpack(self, value: Any, where: str) -> np.ndarray:
        """Return an array that `pack` wrote.

        Raises `UnsupportedInput` unless the data are exactly the entries of the shape, and not far more than the text.
        """
        is_array = type(value) is dict and set(value) == {"dtype", "shape", "data"}
        require(is_array, f"{where}: {str(value)[:80]!r} is not an array: expected are dtype, shape and data")
        kind, shape, data = value["dtype"], value["shape"], value["data"]
        is_kind = type(kind) is str and kind in _KINDS
        require(is_kind, f"{where}: an array of {str(kind)[:80]!r}: {', '.join(_KINDS)} are read")
        is_shape = type(shape) is list and len(shape) <= _MOST_AXES and type(data) is str
        is_shape = is_shape and all(type(size) is int and 0 <= size <= SPARE for size in shape)
        require(is_shape, f"{where}: {str(shape)[:80]} is not a valid shape, or its data are not text")
        written, read = np.dtype(kind).newbyteorder("<"), np.dtype(_KINDS[kind])
        count = math.prod(shape)
        # The size is charged before anything is unpacked; each character of text earns RATIO bytes.
        self._left += RATIO * len(data) - count * read.itemsize
        size = f"{len(data):,} characters are to unpack to {count * read.itemsize:,} bytes"
        require(self._left >= 0, f"{where}: {size}, which no file of ours does: write it again")
        entries = _inflated(data, count * written.itemsize, where)
        return np.frombuffer(entries, written).reshape(shape).astype(read)


def _inflated(text: str, size: int, where: str) -> bytes:
    """Return the `size` bytes that a text unpacks to, without ever allocating more."""
    unpacker = zlib.decompressobj()
    try:
        # One byte more than expected is allowed, which shows data that are too long without unpacking them all.
        entries = unpacker.decompress(base64.b64decode(text, validate=True), size + 1)
    except (ValueError, zlib.error) as fault:
        raise UnsupportedInput(f"{where} is damaged ({fault})") from None
    is_whole = len(entries) == size and unpacker.eof and not unpacker.unused_data
    require(is_whole, f"{where} is damaged: its data are not the {size:,} bytes of its shape")
    return entries


_LAYER = {"kind", "block_sizes", "transition_hidden", "value_hidden", "gate", "temperature"}
_REMEDY = "save its tables, fsa2lrnn.save(fsa2lrnn.nn.switched.as_tables(model), path), and give that file"
Weights = dict[str, np.ndarray]


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
