"""Certificates: up to which length a model is proved right on every word, and the sets that the proof rests on.

One JSON file holds all of it. `fsa2lrnn.judge.check` says what each number means, and judges.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any, cast

import numpy as np

from fsa2lrnn.automata.formats.json_file import from_json as machine_from_json
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.files import write_atomically

FORMAT = "fsa2lrnn-certificate"
VERSION = 1
METHODS = ("sets", "enumeration")


@dataclass(frozen=True, eq=False)
class Sets:
    """A set of states for each node, that is for each machine state and each choice of the last letters read.

    In head h of node (f, j) it holds the states T w, T = basis[f, h], with |w_i − centre_i| ≤ radius_i in the slow
    coordinates i, ‖w − centre‖ ≤ ball over the others, and lower ≤ d·w ≤ upper over all slow coordinates for each
    direction d. f numbers machine states with the last `frame_memory` letters, j the letters before those.

    Args:
        length: of the words that lead here.
        alive: bool (F, J), the nodes that such words reach.
        centre, radius: (F, H, b, J).
        ball: (F, H, J).
        lower, upper: (F, D, J).
    """

    length: int
    alive: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    ball: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True, eq=False)
class Tail:
    """Sets that grow evenly: after i more letters, i ≤ steps, radii and balls are those of `sets` plus i times these.

    Directions bound nothing here. With steps = None nothing grows, and the sets hold the states of all longer words.
    """

    sets: Sets
    radius: np.ndarray
    ball: np.ndarray
    steps: int | None


@dataclass(frozen=True, eq=False)
class Tube:
    """The sets along all words, or what it takes to compute them.

    Args:
        memory: letters that a node remembers; at least 1.
        frame_memory: letters that its coordinates depend on; at least 1.
        start: words of up to this length are looked at one by one.
        basis: T, float64 (F, H, b, b).
        slow: bool (F, H, b), the coordinates that intervals bound.
        part: int64 (|Q|,), states of like number have their directions in common.
        directions: float64 (parts, D, H, b).
        stored: at some lengths, in order. In between a judge computes the sets itself.
        tail: what follows the last length computed so.
    """

    memory: int
    frame_memory: int
    start: int
    basis: np.ndarray
    slow: np.ndarray
    part: np.ndarray
    directions: np.ndarray
    stored: tuple[Sets, ...] = ()
    tail: tuple[Tail, ...] = ()


@dataclass(frozen=True, eq=False)
class Certificate:
    """A model gives the outputs of `machine` at every position that counts of every word of length ≤ `horizon`.

    Args:
        horizon: N, or None for words of every length.
        margins: float64, for each length from 1 a lower bound, rounding included, of how far the wanted logit is above
            every other, at every position of that length that counts. With a tail, it ends where the tail begins, and
            a last entry bounds the rest.
        method: "sets" (docs/theory.md, L1 and L2) or "enumeration" of the joint states, bit for bit.
        dtype: that the model computes in.
        scans: for which this holds. For "sets" it holds whatever the order of summation, with or without fused
            multiply-add; for an enumeration of a model that rounds, of words read letter by letter.
        slack: what entries of A and v may differ from the model's tables, in absolute value.
        sha256: of the tables (`SwitchedAffine.sha256`), for an enumeration of the state dict.
        machine: what is computed; an output that the model lacks does not count.
        tube: of the method "sets".
    """

    horizon: int | None
    margins: np.ndarray
    method: str
    dtype: str
    scans: tuple[str, ...]
    slack: float
    sha256: str
    machine: MooreMachine
    tube: Tube | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnsupportedFormat(f"method {self.method!r} is not known: one of {', '.join(METHODS)}")
        if (self.method == "sets") != (self.tube is not None):
            raise UnsupportedFormat('a certificate has a tube if, and only if, its method is "sets"')
        if self.horizon is not None and self.horizon < 0:
            raise UnsupportedFormat(f"horizon = {self.horizon}: a length is at least 0, None stands for all lengths")
        if self.margins.ndim != 1 or self.margins.dtype != np.float64:
            raise UnsupportedFormat(
                f"margins of shape {self.margins.shape} and dtype {self.margins.dtype}: they are a row of float64"
            )

    @property
    def memory(self) -> int:
        """Letters that a set remembers; 0 for an enumeration."""
        return self.tube.memory if self.tube else 0

    def covers(self, length: int) -> bool:
        """Whether every word of this length is covered."""
        return self.horizon is None or length <= self.horizon

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads back. Raises `UnsupportedFormat` for symbols that JSON can't hold."""
        return {
            "format": FORMAT,
            "version": VERSION,
            **_plain(self, leave_out=("machine", "tube", "scans")),
            "scans": list(self.scans),
            "machine": json.loads(self.machine.to_json()),
            "tube": None if self.tube is None else _tube_to_json(self.tube),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Certificate:
        """Inverse of `to_json`. Raises `UnsupportedFormat` for anything else."""
        if value.get("format") != FORMAT or value.get("version") != VERSION:
            raise UnsupportedFormat(
                f"format {value.get('format')!r}, version {value.get('version')!r}: this reads {FORMAT!r}, {VERSION}"
            )
        try:
            tube = value["tube"]
            return cls(
                horizon=_typed(value["horizon"], int, NoneType),
                margins=_array(value["margins"]),
                method=_typed(value["method"], str),
                dtype=_typed(value["dtype"], str),
                scans=tuple(_typed(scan, str) for scan in _typed(value["scans"], list)),
                slack=float(_typed(value["slack"], int, float)),
                sha256=_typed(value["sha256"], str),
                machine=machine_from_json(json.dumps(value["machine"])),
                tube=None if tube is None else _tube_from_json(tube),
            )
        except Fsa2LrnnError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
            raise UnsupportedFormat(f"the certificate is damaged ({type(error).__name__}: {error})") from error

    def save(self, path: str | Path) -> None:
        """Write one JSON file, atomically. Raises `OSError` as the file system does."""
        write_atomically(Path(path), json.dumps(self.to_json(), ensure_ascii=False).encode())

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read what `save` wrote. Raises `UnsupportedFormat` for a file that is damaged or foreign, else `OSError`."""
        try:
            value = json.loads(Path(path).read_bytes())
        except (ValueError, RecursionError) as error:
            raise UnsupportedFormat(f"{path} is damaged or no JSON file ({error}): certify the model again") from error
        if not isinstance(value, dict):
            raise UnsupportedFormat(f"{path} holds no certificate, but a JSON {type(value).__name__}")
        return cls.from_json(cast("dict[str, Any]", value))


def _tube_to_json(tube: Tube) -> dict[str, Any]:
    return {
        **_plain(tube, leave_out=("stored", "tail")),
        "stored": [_plain(sets) for sets in tube.stored],
        "tail": [{**_plain(tail, leave_out=("sets",)), "sets": _plain(tail.sets)} for tail in tube.tail],
    }


def _tube_from_json(value: dict[str, Any]) -> Tube:
    stored = tuple(_read(Sets, sets) for sets in _typed(value["stored"], list))
    tail = tuple(_read(Tail, {**ramp, "sets": _read(Sets, ramp["sets"])}) for ramp in _typed(value["tail"], list))
    return _read(Tube, {**value, "stored": stored, "tail": tail})


def _read(kind: type[Any], value: dict[str, Any]) -> Any:
    """An object of a data class. Raises `KeyError` or `TypeError` for a field that is missing or of another type."""
    return kind(**{field.name: _decoded(str(field.type), value[field.name]) for field in fields(kind)})


def _decoded(kind: str, value: Any) -> Any:
    if kind == "np.ndarray":
        return _array(value)
    if kind in ("int", "int | None"):
        return _typed(value, int, *([NoneType] if kind == "int | None" else []))
    return value  # sets and tails, read before


def _typed(value: Any, *kinds: type) -> Any:
    """The value, if it is of one of these types; True is no number."""
    if type(value) not in kinds:
        raise TypeError(f"{value!r} in place of {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def _plain(data: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    named = {field.name: getattr(data, field.name) for field in fields(data) if field.name not in leave_out}
    return {name: _packed(cast("np.ndarray", x)) if isinstance(x, np.ndarray) else x for name, x in named.items()}


def _packed(x: np.ndarray) -> dict[str, Any]:
    """Base64 of the compressed entries, little-endian; float32 where that loses nothing."""
    fits = x.dtype == np.float64 and bool((np.abs(x) <= np.finfo(np.float32).max).all())
    narrow = x.astype(np.float32) if fits else x
    kept = narrow if np.array_equal(narrow, x) else x
    entries = np.ascontiguousarray(kept.astype(kept.dtype.newbyteorder("<"))).tobytes()
    data = base64.b64encode(zlib.compress(entries, 9)).decode()
    return {"dtype": kept.dtype.name, "shape": list(x.shape), "data": data}


def _array(value: dict[str, Any]) -> np.ndarray:
    if value["dtype"] not in ("bool", "int64", "float32", "float64"):
        raise UnsupportedFormat(f"an array of {value['dtype']!r}: bool, int64, float32 or float64 are read")
    kind = np.dtype(value["dtype"]).newbyteorder("<")
    flat = np.frombuffer(zlib.decompress(base64.b64decode(value["data"], validate=True)), kind)
    wide = np.float64 if flat.dtype.kind == "f" else kind.newbyteorder("=")
    return flat.reshape(value["shape"]).astype(wide)
