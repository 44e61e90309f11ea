"""Certificates and automata in JSON files. Each field is checked before it is used."""

import json
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import UnsupportedInput
from .packing import Unpacking
from .proof import Claim
from .sets import Sets, Tail, Tube


@dataclass(frozen=True, eq=False)
class Automaton:
    """A complete deterministic Moore machine: delta int64 (|Σ|, n), an output for each state."""

    alphabet: tuple[Hashable, ...]
    delta: np.ndarray
    outputs: tuple[Hashable, ...]
    start: int


@dataclass(frozen=True, eq=False)
class SetCertificate:
    """A horizon certificate by sets, as its file holds it (format "fsa2lrnn-horizon-certificate", version 1)."""

    claim: Claim
    dtype: str
    slack: float
    sha256: str
    machine: Automaton
    ignore: tuple[Hashable, ...]


def read_json(path: Path) -> Any:
    """The value of a JSON file. Raises `UnsupportedInput` for one that is damaged or names a field twice."""
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=unique_fields)
    except (OSError, RecursionError, ValueError) as fault:
        raise UnsupportedInput(f"{path} can't be read as JSON ({str(fault)[:200]})") from None


def read_certificate(path: Path) -> SetCertificate:
    """Raises `UnsupportedInput` for a file that is no certificate by sets of this version."""
    value = read_json(path)
    names = ("format", "version", "horizon", "margins", "method", "dtype", "scans", "slack", "sha256", "machine")
    form, version, horizon, margins, method, dtype, scans, slack, sha256, machine, tube, ignore = fields(
        value, "the certificate", *names, "tube", "ignore"
    )
    if form != "fsa2lrnn-horizon-certificate" or version != 1 or method != "sets":
        raise UnsupportedInput(f"{path}: {form!r:.80}, version {version!r:.80}, method {method!r:.80} is not read here")
    unpack = Unpacking().unpack
    for name, number, kinds in (("horizon", horizon, (int, type(None))), ("slack", slack, (int, float))):
        require(type(number) in kinds and (number is None or 0 <= number < 2.0**1000), f"{name} = {number!r:.80}")
    require(all(type(name) is str for name in (dtype, sha256)), "dtype and sha256 are texts")
    require(all(type(name) is str for name in as_list(scans)) and len(scans) == len(set(scans)) > 0, "scans are names")
    margins = unpack(margins, "margins")
    require(margins.ndim == 1 and margins.dtype == np.float64, f"margins of shape {margins.shape} are no row")
    ignored = tuple(symbol(output) for output in as_list(ignore))
    claim = Claim(horizon, margins, tuple(scans), _tube(tube, unpack))
    return SetCertificate(claim, dtype, float(slack), sha256, _automaton(machine, "the certificate's machine"), ignored)


def read_automaton(path: Path) -> Automaton:
    """Raises `UnsupportedInput` for a file that is no automaton in fsa2lrnn's JSON format."""
    return _automaton(read_json(path), str(path))


def _automaton(value: Any, where: str) -> Automaton:
    require(type(value) is dict and value.get("format") == "fsa2lrnn-machine", f"{where} is no automaton of fsa2lrnn")
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


def _tube(value: Any, unpack: Any) -> Tube:
    names = ("memory", "frame_memory", "start", "basis", "slow", "part", "directions", "stored", "tail")
    *sizes, basis, slow, part, directions, stored, tail = fields(value, "tube", *names)
    require(all(type(size) is int and size < 2**32 for size in sizes), "memory, frame_memory or start is no number")
    basis, slow, part, directions = (unpack(array, "tube") for array in (basis, slow, part, directions))
    ramps: list[Tail] = []
    for ramp in as_list(tail):
        sets, radius, ball, steps = fields(ramp, "tail", "sets", "radius", "ball", "steps")
        require(steps is None or (type(steps) is int and abs(steps) < 2**63), "steps of a tail is no number")
        ramps.append(Tail(_sets(sets, unpack), unpack(radius, "tail"), unpack(ball, "tail"), steps))
    memory, frame_memory, start = sizes
    kept = tuple(_sets(sets, unpack) for sets in as_list(stored))
    return Tube(memory, frame_memory, start, basis, slow, part, directions, kept, tuple(ramps))


def _sets(value: Any, unpack: Any) -> Sets:
    names = ("alive", "centre", "radius", "ball", "lower", "upper")
    length, *arrays = fields(value, "sets", "length", *names)
    require(type(length) is int and abs(length) < 2**63, "the length of sets is no number")
    return Sets(length, *(unpack(array, name) for name, array in zip(names, arrays, strict=True)))


def symbol(value: Any) -> Any:
    """A letter or an output as a hashable object whose equality is the symbols'."""
    if type(value) is dict and len(value) == 1:
        ((tag, items),) = value.items()
        if tag in ("tuple", "frozenset"):
            return (tuple if tag == "tuple" else frozenset)(map(symbol, as_list(items)))
    is_symbol = value is None or type(value) in (str, bool) or (type(value) is int and value.bit_length() < 64)
    require(is_symbol or (type(value) is float and value == value), f"{value!r:.80} is no letter or output")
    return value


def fields(value: Any, where: str, *names: str) -> list[Any]:
    """The values of an object that has these fields and no others."""
    require(type(value) is dict, f"{where} is no object")
    odd = sorted(map(str, set(names) ^ set(value)))
    require(not odd, f"{where}: {', '.join(odd)[:200]} missing or too many: expected are {', '.join(names)}")
    return [value[name] for name in names]


def as_list(value: Any) -> list[Any]:
    require(type(value) is list, f"{str(value)[:80]} is no list")
    return value


def require(condition: bool, fault: str) -> None:
    if not condition:
        raise UnsupportedInput(fault)


def unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "a field stands twice in one object")
    return dict(pairs)
