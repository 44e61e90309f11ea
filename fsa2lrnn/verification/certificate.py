"""Certificates: the length up to which a model is proved right on every word, and the interface to the checker.

A certificate is one JSON file. `fsa2lrnn.checker` defines what each number means, and checks it. Every field is
validated: unknown fields are refused, and so are fields of the other method. The check of a certificate recomputes the
bounds on the rounding of its model (`slack_of`), so that a certificate cannot understate it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch

from fsa2lrnn import checker, symbols
from fsa2lrnn.automata.formats import json_file
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.checker.claims import Sets as Sets
from fsa2lrnn.checker.claims import Tables
from fsa2lrnn.checker.claims import Tail as Tail
from fsa2lrnn.checker.claims import Tube as Tube
from fsa2lrnn.checker.files import RATIO, Unpacking
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.files import write_atomically
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import SwitchedAffine, table_error
from fsa2lrnn.reading import check_fields, parse_json, read, shown
from fsa2lrnn.verdicts import Scope


class CertificateRefused(Fsa2LrnnError, checker.InvalidCertificate):
    """The error for a certificate that does not prove what it claims; the message names the check that fails."""


@contextmanager
def library_errors() -> Iterator[None]:
    """Turn errors of the checker into those of the library, with the same message."""
    try:
        yield
    except checker.InvalidCertificate as error:
        raise CertificateRefused(str(error)) from error
    except checker.UnsupportedInput as error:
        raise UnsupportedFormat(str(error)) from error


def plain(tables: SwitchedAffine) -> Tables:
    """Return tables as numpy arrays, float32 and float64 as they are and other dtypes as float64."""
    read = {name: tensor for name, tensor in vars(tables.readout).items() if tensor is not None}
    tensors = {"A": tables.A, "v": tables.v, "x0": tables.x0, **read}
    dtype = str(tables.dtype).removeprefix("torch.")
    kind = tables.dtype if dtype in ("float32", "float64") else torch.float64
    numbers = {name: tensor.detach().cpu().to(kind).numpy() for name, tensor in tensors.items()}
    return Tables(numbers, dtype, tables.alphabet, tables.outputs)


def checked(tables: SwitchedAffine) -> Tables:
    """Return tables as numpy arrays; raise `UnsupportedFormat` if their rounding is not bounded."""
    numbers = plain(tables)
    with library_errors():
        numbers.format()
    return numbers


def slack_of(model: LRNN | SwitchedAffine, more: float = 0.0) -> Slack:
    """Return bounds on how far the tables of any evaluation of `model` differ from `switched(model)`, plus `more`.

    The bounds are `more` alone for tables, for gates that look their tables up (`Layer.is_lookup`), and for gates that
    sum integers.

    Raises:
        UnsupportedFormat: for a layer that does not bound its rounding, for numbers near the end of the format's range,
            and for a `more` that is negative, infinite or NaN.
    """
    if not 0 <= more < np.inf:
        raise UnsupportedFormat(f"slack = {more}: what tables may differ by is a number of at least 0")
    if isinstance(model, SwitchedAffine):
        return Slack(more, more)
    # T27: the bound between any two evaluations of the gates, over all letters.
    A, v = (error.numpy() for error in table_error(model))
    if not (np.isfinite(A).all() and np.isfinite(v).all()):
        raise UnsupportedFormat(
            "nothing bounds by how much the tables of this model may differ from one shape of call to the next: its "
            "gates' numbers come near the end of the format's range, or p is over 64; let "
            "LRNN.from_affine(switched(model)) look them up"
        )
    return Slack(A + more, v + more)


FORMAT = "fsa2lrnn-horizon-certificate"
VERSION = 1
METHODS = ("sets", "joint sets", "enumeration")
_SMALL = 1 << 16  # bytes: smaller arrays are always compressed
_LACKS = {
    "sets": ("partition",),
    "joint sets": ("slack", "tube"),
    "enumeration": ("margins", "slack", "tube", "partition"),
}


@dataclass(frozen=True, eq=False)
class Certificate(Brief):
    """A proof that a model gives the outputs of `machine` wherever they count, on all words of length ≤ `horizon`.

    Args:
        horizon: the certified length N, or None for words of every length.
        margins: float64, one lower bound for each length from 1, rounding included, on the margin of the expected logit
            over every other at all positions of that length that count. With a tail, the entries end where the tail
            begins, and a last entry bounds the rest.
        method: "sets" (docs/theory.md, L1 and L2), "joint sets" of all layers (T60), or "enumeration" of the joint
            states, bit for bit.
        dtype: the dtype that the model computes in.
        scans: the scans covered. A proof by sets of either kind holds for any order of summation, with or without fused
            multiply-add; an enumeration of a model that rounds holds for words read letter by letter.
        slack: absolute tolerance for the entries of A and v, in addition to the rounding of the model's gates in any
            order of summation, which a checker computes from the model.
        sha256: the digest of the tables (`SwitchedAffine.sha256`), for other methods than "sets" of the state dict.
        machine: the machine that the model computes.
        tube: the sets of the method "sets".
        ignore: the outputs of the machine that do not count; "lacked", in old files that do not name them, stands for
            those that the model does not have.
        partition: the nodes of the method "joint sets", int64 (|Σ|, n): the node that each letter leads to, −1 where it
            does not matter. Words of one node lead to one state of the machine; node 0 is the start.
        tested_layers: the model's user-defined layers (`Coverage.tested_layers`). Files name them if there are any.

    Raises `UnsupportedFormat` for fields of a wrong type, and for fields that contradict each other.
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
    ignore: Literal["lacked"] | tuple[Hashable, ...] = ()
    partition: np.ndarray | None = None
    tested_layers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if self.tube is not None:
            for part in _parts(self.tube):
                check_fields(part)
        if self.method not in METHODS:
            raise UnsupportedFormat(f"method {self.method!r} is not known: one of {', '.join(METHODS)}")
        if (self.method == "sets") != (self.tube is not None):
            raise UnsupportedFormat('a certificate has a tube if, and only if, its method is "sets"')
        if (self.method == "joint sets") != (self.partition is not None):
            raise UnsupportedFormat('a certificate has a partition if, and only if, its method is "joint sets"')
        if self.horizon is not None and self.horizon < 0:
            raise UnsupportedFormat(f"horizon = {self.horizon}: a length is at least 0, None stands for all lengths")
        if self.margins.ndim != 1 or self.margins.dtype != np.float64:
            raise UnsupportedFormat(
                f"margins of shape {self.margins.shape} and dtype {self.margins.dtype}: they are a row of float64"
            )
        if self.slack and self.method != "sets":
            raise UnsupportedFormat(f"slack = {self.slack}: a tolerance for tables, which only sets of one layer allow")
        if self.method == "enumeration" and len(self.margins):
            raise UnsupportedFormat("margins are of sets: an enumeration bounds none, and claims none")
        if not self.scans or len(set(self.scans)) < len(self.scans):
            raise UnsupportedFormat(f"scans = {self.scans}: name at least one, each once")

    @property
    def memory(self) -> int:
        """The number of letters that a set remembers; 0 for an enumeration."""
        return self.tube.memory if self.tube else 0

    @property
    def scope(self) -> Scope | None:
        """The outputs that count; None for an old file that does not name them (`check` computes them)."""
        if isinstance(self.ignore, str):
            return None
        outputs = minimise(self.machine).outputs
        ignored = set(self.ignore)
        return Scope(len(outputs), sum(output in ignored for output in outputs), self.ignore)

    def _claim(self) -> str:
        length = "any length" if self.horizon is None else f"up to {self.horizon:,} letters"
        return f"right on every word of {length}"

    def __str__(self) -> str:
        return f"certificate, to be checked: {self._claim()}, by {self.method}, in {self.dtype}"

    def covers(self, length: int) -> bool:
        """Decide whether the certificate covers words of this length."""
        return self.horizon is None or length <= self.horizon

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object for `from_json`; raise `UnsupportedFormat` for symbols that JSON cannot represent."""
        value = _plain(self)
        if not self.tested_layers:  # as in older files, which lack this field
            del value["tested_layers"]
        value = {name: part for name, part in value.items() if name not in _LACKS[self.method]}
        ignore = self.ignore if isinstance(self.ignore, str) else [symbols.to_json(output) for output in self.ignore]
        return {"format": FORMAT, "version": VERSION, **value, "ignore": ignore}

    @classmethod
    def from_json(cls, value: object) -> Certificate:
        """Return the certificate that `to_json` wrote; raise `UnsupportedFormat` for any other value."""
        if not isinstance(value, dict):
            raise UnsupportedFormat(f"{shown(value)} is not a certificate: it must be a JSON object")
        rest = dict(cast("dict[str, Any]", value))
        form = rest.pop("format", None), rest.pop("version", None)
        if form != (FORMAT, VERSION) or type(form[1]) is not int:
            raise UnsupportedFormat(
                f"format {shown(form[0])}, version {shown(form[1])}: this reads {FORMAT!r}, {VERSION}"
            )
        method = str(rest.get("method"))
        lacks = _LACKS.get(method, ())
        if extra := [name for name in lacks if name in rest]:
            raise UnsupportedFormat(f"{', '.join(extra)}: the method {method!r} has none, and nothing would check it")
        empty = {"margins": pack(np.zeros(0)), "slack": 0}
        rest |= {name: empty[name] for name in lacks if name in empty}
        decoders = {
            np.ndarray: library_errors()(Unpacking().unpack),
            MooreMachine: json_file.from_value,
            Hashable: lambda symbol, _: symbols.from_json(symbol),
        }
        return read(cls, rest, "certificate", decoders)

    def save(self, path: str | Path) -> None:
        """Write the certificate atomically as one JSON file; raise `OSError`, and `UnsupportedFormat` as `to_json`."""
        write_atomically(Path(path), json.dumps(self.to_json()).encode())

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Return the certificate in a file of `save`; raise `UnsupportedFormat` for other files, and `OSError`."""
        try:
            return cls.from_json(parse_json(Path(path).read_bytes(), str(path)))
        except Fsa2LrnnError as error:
            raise UnsupportedFormat(f"{path} holds no certificate ({error}): certify the model again") from error


def _parts(tube: Tube) -> Iterator[Tube | Sets | Tail]:
    """Yield a tube and all its parts, each before the parts that it contains, in the order of validation."""
    yield tube
    yield from tube.stored
    for ramp in tube.tail:
        yield ramp
        yield ramp.sets


def _plain(data: object) -> Any:
    if isinstance(data, np.ndarray):
        return pack(data)
    if isinstance(data, MooreMachine):
        return json_file.to_value(data)
    if isinstance(data, tuple):
        return [_plain(part) for part in cast("tuple[Any, ...]", data)]
    return {field.name: _plain(getattr(data, field.name)) for field in fields(data)} if is_dataclass(data) else data


def pack(x: np.ndarray) -> dict[str, Any]:
    """Return a JSON object that the checker's `Unpacking` decodes: bool, int64 or float64 arrays.

    >>> Unpacking().unpack(pack(np.array([0.5, 3])), "x")
    array([0.5, 3. ])
    """
    fits = x.dtype == np.float64 and bool((np.abs(x) <= np.finfo(np.float32).max).all())
    narrow = x.astype(np.float32) if fits else x
    stored = narrow if np.array_equal(narrow, x) else x
    entries = np.ascontiguousarray(stored.astype(stored.dtype.newbyteorder("<"))).tobytes()
    data = zlib.compress(entries, 9)
    if x.nbytes > max(_SMALL, RATIO * len(data)):
        data = zlib.compress(entries, 0)
    return {"dtype": stored.dtype.name, "shape": list(x.shape), "data": base64.b64encode(data).decode()}
