"""Certificates and automata in JSON files. Each field is checked before it is used.

Arrays are base64 of their compressed entries, little-endian, float32 where that loses nothing. A few bytes can claim to
unpack to gigabytes. So a reader allows an array sixteen times its written size, and all arrays of a file `SPARE` bytes
beyond that; a writer that compresses better writes the entries uncompressed.
"""

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

from .errors import UnsupportedInput, require
from .sets import Claim, Sets, Tail, Tube

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
    """A certificate as read from a file, whose claim is by sets (`sets.Claim`) or by pairs (`pairs.Pairs`)."""

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


def symbol(value: Any) -> Any:
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
