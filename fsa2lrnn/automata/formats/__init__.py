"""Where machines come from and go to: one file a format, `read_source` and `write_file` as the doors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from fsa2lrnn.automata.language import Completion, widen
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat, shortened
from fsa2lrnn.files import check_file, exists, write_atomically
from fsa2lrnn.reading import decode
from fsa2lrnn.source_kinds import FORMATS, SourceFormat

MAX_FILE_BYTES = 32 << 20  # DOT is read at some 1.3 MB a second: half a minute; a table of 10⁷ entries fits in JSON

_SYMBOL_TABLES = {"isymbols": (".isyms", ".syms"), "osymbols": (".osyms", ".syms")}


def read_source(
    source: str | Path,
    *,
    completion: Completion | None = None,
    alphabet: Iterable[Hashable] | None = None,
    **options: Any,
) -> MooreMachine:
    """A machine from `regex:…`, `task:…` or a file, recognised by its ending: the one door for CLI and Python.

    Args:
        completion: what a missing transition means (`assemble.to_machine`); for formats that can miss one.
        alphabet: letters, in the order wanted. An expression's `.` and `[^a]` speak of them; in any other source, those
            that it does not know are missing transitions (`language.widen`).
        options: further arguments of the reader, as `options_of` lists them. `isymbols` and `osymbols` of OpenFst
            are paths here; without them, tables beside the file are taken.

    Raises:
        UnsupportedFormat: if the source, its encoding or an option is not understood, or there is no such file; a
            regular expression or task without its prefix is recognised.
        BudgetExceeded: if the file is larger than 32 MiB, or its machine too large.
        InvalidMachine: with every problem of the file.

    >>> read_source("regex:(ab)*").accepts("abab")
    True
    """
    found = _format_of(source, for_writing=False)
    taken = options_of(found)
    letters = None if alphabet is None else tuple(alphabet)
    if letters is not None and "alphabet" in taken:
        options["alphabet"] = letters
    elif letters is not None:
        can_miss = "completion" in taken
        machine = read_source(source, completion=completion if can_miss else None, **options)
        return widen(machine, letters, completion)
    if completion is not None:
        if "completion" not in taken:
            raise UnsupportedFormat(
                f"completion={completion!r}: no transition can be missing in {found.name}, leave it out"
            )
        options["completion"] = completion
    if unknown := [name for name in options if name not in taken]:
        takes = ", ".join(taken) or "no options"
        raise UnsupportedFormat(f"option {unknown[0]!r} is not known to the reader of {found.name}: it takes {takes}")
    read = _function(found.reader)
    if not found.is_file:
        _check_characters(str(source), found)
        return read(str(source).removeprefix(found.endings[0]), **options)
    path = Path(source)
    if found.name == "OpenFst":
        options = {**options, **_symbol_tables(path, options)}
    return read(_read_text(path), origin=str(source), **options)


def write_file(machine: MooreMachine, path: str | Path) -> None:
    """Write a machine in the format of the ending; OpenFst gets its symbol table beside it, as NAME.syms.

    Raises `UnsupportedFormat` if the ending is unknown, the format can't hold the machine, or the file can't be
    written.
    """
    found, path = _format_of(path, for_writing=True), Path(path)
    written = _function(found.writer or "")(machine)
    texts = cast("tuple[str, ...]", written) if isinstance(written, tuple) else (str(written),)
    for target, text in zip(_targets(path, found), texts, strict=True):
        try:
            write_atomically(target, text.encode())
        except UnicodeEncodeError as fault:
            raise UnsupportedFormat(
                f"{target} can't be written: {text[fault.start]!r} is half a character, which UTF-8 does not have: "
                "rename the symbol"
            ) from None
        except OSError as fault:
            raise _unwritable(target, fault) from None


def check_target(path: str | Path) -> None:
    """Raises `UnsupportedFormat` where `write_file` would, whatever the machine: for the ending, or the place."""
    found, path = _format_of(path, for_writing=True), Path(path)
    for target in _targets(path, found):
        try:
            check_file(target)
        except OSError as fault:
            raise _unwritable(target, fault) from None


def _targets(path: Path, found: SourceFormat) -> tuple[Path, ...]:
    """The files that a machine is written to."""
    return (path, _beside(path, ".syms")) if found.name == "OpenFst" else (path,)


def _unwritable(target: Path, fault: OSError) -> UnsupportedFormat:
    return UnsupportedFormat(f"{target} can't be written ({fault.strerror}): choose another path")


def _function(name: str) -> Callable[..., Any]:
    module, function = name.split(":")
    return getattr(import_module(f"fsa2lrnn.automata.{module}"), function)


def options_of(known: SourceFormat) -> tuple[str, ...]:
    """What a reader takes beside the text, `completion` among it where a transition can be missing."""
    return tuple(name for name in inspect.signature(_function(known.reader)).parameters if name != "origin")[1:]


def _format_of(source: str | Path, for_writing: bool) -> SourceFormat:
    text, candidates = str(source), [found for found in FORMATS if found.writes or not for_writing]
    for found in candidates:
        if text.lower().endswith(found.endings) if found.is_file else text.startswith(found.endings):
            return found
    if not for_writing and not exists(text):
        from fsa2lrnn.automata.formats.suggestion import meant

        if (suggestion := meant(text)) is not None:
            raise UnsupportedFormat(f"{shortened(text)}: no such file; did you mean {shortened(suggestion)}?")
    verb = "written" if for_writing else "read"
    known = ", ".join(ending for found in candidates for ending in found.endings)
    raise UnsupportedFormat(f"{shortened(text)!r} can't be {verb}, its kind is not known: understood are {known}")


def _check_characters(source: str, found: SourceFormat) -> None:
    """Bytes of a command line that are no UTF-8 reach us as halves of characters."""
    if half := next((c for c in source if "\ud800" <= c <= "\udfff"), None):
        raise UnsupportedFormat(
            f"{found.name} {shortened(source)!r} is not UTF-8 ({half!r} at position {source.index(half) + 1}): write "
            "it in that encoding"
        )


def _symbol_tables(path: Path, options: dict[str, Any]) -> dict[str, str]:
    tables: dict[str, str] = {}
    for name, endings in _SYMBOL_TABLES.items():
        beside = [_beside(path, ending) for ending in endings]
        given = options.get(name)
        table = Path(given) if given is not None else next((b for b in beside if b.is_file()), None)
        if table is not None:
            tables[name] = _read_text(table)
    return tables


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name[: -len(".fst.txt")] + ending)


def _read_text(path: Path) -> str:
    try:
        if path.is_dir():
            raise UnsupportedFormat(f"{path} is a directory: name one of its files")
        if not path.exists():
            raise UnsupportedFormat(f"no such file: {path}")
        if not path.is_file():
            raise UnsupportedFormat(f"{path} is not a regular file: copy what it holds to one")
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise BudgetExceeded(
                f"{path} has {size:,} bytes, the limit is {MAX_FILE_BYTES:,}: minimise the automaton with the tool "
                "that wrote it, or build the MooreMachine in Python"
            )
        data = path.read_bytes()
    except OSError as fault:
        raise UnsupportedFormat(f"{path} can't be read ({fault.strerror}): check the path and its rights") from None
    if not data.strip():
        raise UnsupportedFormat(f"{path} is empty: was it written to the end?")
    return decode(data, str(path))


__all__ = ["FORMATS", "SourceFormat", "check_target", "options_of", "read_source", "write_file"]
