"""Read untrusted files: text, JSON and TOML of bounded depth, and JSON values checked against declared types.

Every reader of the library uses this module. The size of a value is bounded by that of its file, or by a stated limit.
For every content of a file, the result is a value or an `UnsupportedFormat` that names the fault.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from reprlib import Repr
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from fsa2lrnn.errors import UnsupportedFormat

MAX_DEPTH = 100  # lists and objects within each other; ours are five deep, and Python's stack is a thousand
MAX_WHOLE = 1 << 64

T = TypeVar("T")
Decoder = Callable[[Any, str], Any]  # of a value and where it stands; raises `UnsupportedFormat`

_FAULTS_SHOWN = 10
_EXPECTED: dict[Any, str] = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "text",
    NoneType: "null",
    tuple: "a list",
    dict: "an object",
}


@dataclass(frozen=True)
class Allowed:
    """A condition on the value of a field, for annotations: `Annotated[float, Allowed("above 0", lambda x: x > 0)]`.

    Args:
        text: the condition as text, for messages.
        holds: whether a value of the annotated type is allowed; not called for None.
    """

    text: str
    holds: Callable[[Any], bool]


def whole(least: int, most: int) -> Allowed:
    """Return the condition that a whole number is in `least` … `most`.

    >>> whole(1, 1000).text, whole(1, 1000).holds(0)
    ('a whole number from 1 to 1,000', False)
    """
    return Allowed(f"a whole number from {least:,} to {most:,}", lambda value: least <= value <= most)


def one_of(names: Iterable[str]) -> Allowed:
    """Return the condition that a text is one of these names.

    >>> one_of(["clip", "none"]).text
    'one of clip, none'
    """
    names = tuple(names)
    return Allowed(f"one of {', '.join(names)}", names.__contains__)


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file; raise `OSError`, or `UnsupportedFormat` naming an invalid byte."""
    return decode(path.read_bytes(), str(path))


def decode(data: bytes, name: str) -> str:
    """Return the text of UTF-8 data, without a byte order mark; raise `UnsupportedFormat` naming an invalid byte.

    Text of another kind, and data that are no text, are named as such.

    >>> decode("é".encode(), "a file")
    'é'
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise UnsupportedFormat(f"{name} is UTF-16: save it as UTF-8") from None
        if 0 in data:
            raise UnsupportedFormat(f"{name} is not text: it contains zero bytes; give a text file") from None
        # The decoder counts from behind a mark.
        start = fault.start + len(data) - len(fault.object)
        line = data.count(b"\n", 0, start) + 1
        raise UnsupportedFormat(
            f"{name} is not UTF-8 (byte 0x{data[start]:02x} at offset {start:,}, in line {line:,}): save it in that "
            "encoding"
        ) from None


def parse_json(text: str | bytes, origin: str, is_line: bool = False) -> Any:
    """Return the value of a JSON text of at most `MAX_DEPTH` levels.

    Raises `UnsupportedFormat` naming `origin`: for syntax errors, with line and column (with `is_line`, for an `origin`
    that names the line, the column alone); for NaN, a number beyond the floats, a lone surrogate, or a field that
    stands twice in an object.

    >>> parse_json('{"steps": [1, 2.5, null]}', "the text")
    {'steps': [1, 2.5, None]}
    """
    decoded = decode(text, origin) if isinstance(text, bytes) else text
    try:
        value = json.loads(decoded, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)
        if "\\u" in decoded:  # an escape may stand for half a character
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        _refuse_depth(origin)
    except UnicodeEncodeError:
        raise UnsupportedFormat(f"{origin} holds half a character (a lone surrogate): write the file again") from None
    except json.JSONDecodeError as fault:
        line = "" if is_line else f": line {fault.lineno}"
        raise UnsupportedFormat(
            f"{origin}{line}, column {fault.colno}: {fault.msg}: the file is truncated or not JSON"
        ) from None
    except _ForeignValue as fault:
        raise UnsupportedFormat(f"{origin}: {fault}: write the file again") from None
    except ValueError:
        raise UnsupportedFormat(
            f"{origin}: it holds a number of more than 4,300 digits: write the file again"
        ) from None
    _check_depth(value, origin)
    return value


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """Return the table of a TOML text; raise `UnsupportedFormat` naming `origin` for errors or too deep nesting."""
    import tomllib

    try:
        value = tomllib.loads(text)
    except RecursionError:
        _refuse_depth(origin)
    except ValueError as fault:  # of the syntax, or an integer of more than 4,300 digits
        raise UnsupportedFormat(f"{origin}: {str(fault)[:200]}: correct the TOML") from None
    _check_depth(value, origin)
    return value


class _ForeignValue(ValueError):
    """An error in JSON that Python accepts, but that no writer of this library writes."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise _ForeignValue(f"the field {shown(twice)} stands twice in one object")
    return value


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise _ForeignValue(f"it holds {text[:40]}, which is beyond the largest float")
    return value


def _constant(name: str) -> float:
    if name == "NaN":
        raise _ForeignValue("it holds NaN, which is not a number")
    return float(name)


def _check_depth(value: object, origin: str) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        inside = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = [part for parts in inside for part in parts if type(part) is list or type(part) is dict]
        if not level:
            return
    _refuse_depth(origin)


def _refuse_depth(origin: str) -> NoReturn:
    raise UnsupportedFormat(f"{origin}: nested deeper than {MAX_DEPTH}, and no file of ours is: write it again")


def read(
    kind: type[T],
    value: Any,
    where: str,
    decoders: Mapping[Any, Decoder] | None = None,
    pass_over: bool = False,
) -> T:
    """Return a JSON value as an instance of a type, after checking that it fits.

    The type is int, float (finite numbers), bool, str, None, a tuple (a list in JSON), a dictionary or data class (an
    object in JSON), a union of these, or one that `decoders` read. True is not a number, and 2.0 is not an int. Fields
    of a data class with a default may be missing, and unknown ones are ignored if `pass_over` is true, else refused.
    Raises `UnsupportedFormat` naming up to ten values that do not fit, by their place in `where`, or the errors of the
    data class itself.

    >>> from fsa2lrnn.nn import BlockLayerConfig
    >>> read(BlockLayerConfig, {"block_sizes": [2, 2], "transition_hidden": 4, "value_hidden": 4}, "layer 0")
    BlockLayerConfig(block_sizes=(2, 2), transition_hidden=4, value_hidden=4, gate='relu', temperature=0.4)
    """
    reader = _ValueReader(decoders or {}, from_json=True, pass_over=pass_over)
    result = reader.read(kind, value, where)
    reader.finish()
    return result


def check_fields(data: object, name: str = "") -> None:
    """Check the fields of a data class against their annotations and conditions (`Allowed`), in its `__post_init__`.

    Raises `UnsupportedFormat` naming up to ten fields that do not fit, after `name` and a colon.
    """
    reader = _ValueReader({}, from_json=False, pass_over=False)
    for field, kind in _hints(type(data)).items():
        reader.read(kind, getattr(data, field), field)
    reader.finish(name)


def check_whole(value: object, name: str, most: float = math.inf) -> None:
    """Raise `UnsupportedFormat` unless a value is a whole number from 1 to `most`."""
    if type(value) is not int or not 1 <= value <= most:
        until = "" if most == math.inf else f" to {most:,}"
        raise UnsupportedFormat(f"{name} = {shown(value)}: give a whole number from 1{until}")


def shown(value: object) -> str:
    """Return the `repr` of a value for messages, abbreviated if it is long."""
    return _REPR.repr(value)


class _ValueReader:
    def __init__(self, decoders: Mapping[Any, Decoder], from_json: bool, pass_over: bool) -> None:
        self._decoders, self._from_json, self._pass_over = decoders, from_json, pass_over
        self._faults: list[str] = []  # the first few
        self._n_faults = 0

    def finish(self, name: str = "") -> None:
        if self._faults:
            more = self._n_faults - len(self._faults)
            faults = "; ".join(self._faults) + (f"; and {more:,} more" if more else "")
            raise UnsupportedFormat(f"{name}: {faults}" if name else faults)

    def read(self, kind: Any, value: Any, where: str) -> Any:
        condition = None
        if get_origin(kind) is Annotated:
            kind, condition = get_args(kind)
        options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        fitting = [option for option in options if self._may_be(option, value)]
        if not fitting or not (condition is None or value is None or condition.holds(value)):
            text = condition.text if condition else " or ".join(map(self._name, options))
            return self._add(f"{where} = {shown(value)} must be {text}")
        kind, value = fitting[0], cast("Any", value)  # a type checker takes it for None after the condition
        if kind in self._decoders:
            return self._decoders[kind](value, where)
        if get_origin(kind) is tuple:
            return self._read_tuple(kind, value, where)
        if get_origin(kind) in (dict, Mapping):
            _, of = get_args(kind)
            return {self.read(str, name, where): self.read(of, part, f"{where}.{name}") for name, part in value.items()}
        if is_dataclass(kind):
            return self._read_fields(kind, value, where) if self._from_json else value
        return float(value) if kind is float else value

    def _may_be(self, kind: object, value: object) -> bool:
        plain = get_origin(kind) or kind
        if kind in self._decoders or (kind is Any and not self._from_json):
            return True
        if plain is int:
            return type(value) is int and abs(value) <= MAX_WHOLE
        if plain is float:
            whole = type(value) is int and abs(value) <= MAX_WHOLE
            return whole or (isinstance(value, float) and math.isfinite(value))
        if plain is Literal:
            return any(value == one and type(value) is type(one) for one in get_args(kind))
        if plain is tuple:
            return isinstance(value, list if self._from_json else tuple)
        if plain in (dict, Mapping) or (is_dataclass(plain) and self._from_json):
            return isinstance(value, dict)
        return isinstance(value, cast("type", plain))

    def _read_tuple(self, kind: Any, value: Any, where: str) -> tuple[Any, ...] | None:
        kinds = get_args(kind)
        if kinds[-1:] == (Ellipsis,):
            kinds = kinds[:1] * len(value)
        if len(kinds) != len(value):
            return self._add(f"{where} has {len(value):,} entries, expected are {len(kinds)}")
        return tuple(
            self.read(of, part, f"{where}[{i}]") for i, (of, part) in enumerate(zip(kinds, value, strict=True))
        )

    def _read_fields(self, kind: Any, value: dict[str, Any], where: str) -> Any:
        hints, before, values = _hints(kind), self._n_faults, dict[str, Any]()
        for name in [name for name in value if name not in hints and not self._pass_over]:
            self._add(f"{where}.{shown(name)[1:-1]} is not known: remove it")
        for field in fields(kind):
            if field.name in value:
                values[field.name] = self.read(hints[field.name], value[field.name], f"{where}.{field.name}")
            elif field.default is MISSING and field.default_factory is MISSING:
                self._add(f"{where}.{field.name} is missing")
        return kind(**values) if self._n_faults == before else None

    def _name(self, kind: Any) -> str:
        plain = get_origin(kind) or kind
        if plain is Literal:
            return " or ".join(map(repr, get_args(kind)))
        if plain is Mapping or (self._from_json and is_dataclass(plain)):
            plain = dict
        return _EXPECTED.get(plain) or f"a {plain.__name__}"

    def _add(self, fault: str) -> None:
        self._n_faults += 1
        if self._n_faults <= _FAULTS_SHOWN:
            self._faults.append(fault)


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(cast("Any", kind))}


class _Repr(Repr):
    def repr_int(self, x: int, level: int) -> str:
        bits = x.bit_length()  # TOML has hexadecimal numbers of any size, and Python prints 4,300 digits at most
        return super().repr_int(x, level) if bits <= 1 << 13 else f"a whole number of {bits:,} bits"


_REPR = _Repr()
_REPR.maxstring = _REPR.maxother = 80
_REPR.maxlevel = 2
