"""Read machines from sources and files (`read_source`) and write them (`write_file`), with one module per format."""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from collections.abc import Hashable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from fsa2lrnn.automata.language import Completion, trim, widen
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, MissingFile, SourceWarning, UnsupportedFormat, shortened
from fsa2lrnn.files import FORMATS, SourceFormat, check_file, exists, is_folder, write_atomically
from fsa2lrnn.reading import decode

MAX_FILE_BYTES = 32 << 20  # DOT is read at some 1.3 MB per second: half a minute; a table of 10⁷ entries fits in JSON

_PREFIX = re.compile(r"\s*(regex|task)\s*:\s*(.*)", re.IGNORECASE | re.DOTALL)
_CALL = re.compile(r"\s*(\w+)\s*(\(.*)?\s*", re.DOTALL)
_OPERATORS = frozenset("()*+|?[]{}&^")
_SYMBOL_TABLES = {"isymbols": (".isyms", ".syms"), "osymbols": (".osyms", ".syms")}


def read_source(
    source: str | Path,
    *,
    completion: Completion | None = None,
    alphabet: Iterable[Hashable] | None = None,
    **options: object,
) -> MooreMachine:
    """Return a machine from `regex:…`, `task:…` or a file, recognised by its ending.

    Args:
        completion: the treatment of missing transitions (`graph.to_machine`), for formats that can have them.
        alphabet: the letters, in order. In a regular expression `.` and `[^a]` refer to them; in any other source,
            letters that do not occur have missing transitions (`language.widen`).
        options: further arguments of the reader, as `options_of` lists them. `isymbols` and `osymbols` of OpenFst are
            paths here, by default those of tables next to the file.

    Raises:
        UnsupportedFormat: if the source, its encoding or an option is not understood; the message suggests a missing
            prefix of a regular expression or task.
        MissingFile: if the file does not exist; it is a `FileNotFoundError`.
        BudgetExceeded: if the file is larger than 32 MiB, or its machine too large.
        InvalidMachine: with every problem of the file.

    A `SourceWarning` says that the machine accepts no word, or every word.

    >>> read_source("regex:(ab)*").accepts("abab")
    True
    """
    machine = _read(source, completion, alphabet, options)
    if machine.is_acceptor and len(answers := set(trim(machine).outputs)) == 1:
        words = "every word" if answers.pop() else "no word"
        warnings.warn(f"{shortened(str(source))} accepts {words}: is that meant?", SourceWarning, stacklevel=2)
    return machine


def _read(
    source: str | Path, completion: Completion | None, alphabet: Iterable[Hashable] | None, options: dict[str, Any]
) -> MooreMachine:
    """Return the machine of a source, with every option checked against the signature of the format's reader.

    A reader without the option `alphabet` gets none: the letters are added to the machine that it reads.
    """
    form = _format_of(source, for_writing=False)
    taken = options_of(form)
    letters = None if alphabet is None else tuple(alphabet)
    if letters is not None and "alphabet" in taken:
        options = {**options, "alphabet": letters}
    elif letters is not None:  # a reader without that option: add letters to the machine that it reads
        can_miss = "completion" in taken
        machine = _read(source, completion if can_miss else None, None, options)
        return widen(machine, letters, completion)
    if completion is not None:
        if "completion" not in taken:
            raise UnsupportedFormat(
                f"completion={completion!r}: no transition can be missing in {form.name}, leave it out"
            )
        options = {**options, "completion": completion}
    if unknown := [name for name in options if name not in taken]:
        takes = ", ".join(taken) or "no options"
        raise UnsupportedFormat(f"option {unknown[0]!r} is not known to the reader of {form.name}: it takes {takes}")
    read = _loaded(form.reader)
    if not form.is_file:
        _check_characters(str(source), form)
        return read(str(source).removeprefix(form.endings[0]), **options)
    path = Path(source)
    if form.name == "OpenFst":
        options = {**options, **_symbol_tables(path, options)}
    return read(_read_text(path), origin=str(source), **options)


def write_file(machine: MooreMachine, path: str | Path) -> None:
    """Write a machine to a file in the format of its ending; for OpenFst, also write its symbol tables.

    Raises `UnsupportedFormat` if the ending is unknown, the format cannot represent the machine, or writing fails.
    """
    form, path = _format_of(path, for_writing=True), Path(path)
    written = _loaded(form.writer or "")(machine)
    texts = cast("tuple[str, ...]", written) if isinstance(written, tuple) else (str(written),)
    for target, text in zip(_targets(path, len(texts)), texts, strict=True):
        try:
            write_atomically(target, text.encode())
        except UnicodeEncodeError as fault:
            raise UnsupportedFormat(
                f"{target} cannot be written: {text[fault.start]!r} is half a character, which UTF-8 does not have: "
                "rename the symbol"
            ) from None
        except OSError as fault:
            raise _unwritable(target, fault) from None


def check_target(path: str | Path) -> None:
    """Raise `UnsupportedFormat` if a path has an unknown ending or cannot be written, before there is a machine."""
    form, path = _format_of(path, for_writing=True), Path(path)
    for target in _targets(path, 4 if form.name == "OpenFst" else 1):
        try:
            check_file(target)
        except OSError as fault:
            raise _unwritable(target, fault) from None


def _targets(path: Path, texts: int) -> tuple[Path, ...]:
    tables = {1: (), 2: (".syms",), 3: (".isyms", ".osyms"), 4: (".syms", ".isyms", ".osyms")}[texts]
    return (path, *(_sibling(path, ending) for ending in tables))


def _unwritable(target: Path, fault: OSError) -> UnsupportedFormat:
    return UnsupportedFormat(f"{target} cannot be written ({fault.strerror}): choose another path")


def _loaded(name: str) -> Any:
    module, attribute = name.split(":")
    return getattr(import_module(f"fsa2lrnn.automata.{module}"), attribute)


def options_of(form: SourceFormat) -> tuple[str, ...]:
    """Return the names of a reader's options, including `completion` if transitions can be missing in its format."""
    return tuple(name for name in inspect.signature(_loaded(form.reader)).parameters if name != "origin")[1:]


_OTHERS = {
    (
        ".safetensors",
    ): "is a model, where an automaton is asked for: `fsa2lrnn extract` reads the automaton out of a model",
    (
        ".csv",
        ".jsonl",
        ".words",
        ".dat",
        ".abbadingo",
    ): "holds words, where an automaton is asked for: `fsa2lrnn learn` learns one from words",
}


def _format_of(source: str | Path, for_writing: bool) -> SourceFormat:
    """Return the format of a path's ending or of a source's prefix; raise `UnsupportedFormat` if none fits."""
    text, candidates = str(source), [form for form in FORMATS if form.writer or not for_writing]
    for form in candidates:
        if text.lower().endswith(form.endings) if form.is_file else text.startswith(form.endings):
            return form
    if not for_writing and not exists(text) and (suggestion := meant(text)) is not None:
        raise MissingFile(f"{shortened(text)}: no such file; did you mean {shortened(suggestion)}?")
    verb = "written" if for_writing else "read"
    endings = ", ".join(ending for form in candidates for ending in form.endings)
    if not for_writing and is_folder(text):
        raise UnsupportedFormat(f"{shortened(text)} is a folder: give a file in it; understood are {endings}")
    for endings_of_others, what in _OTHERS.items():
        if not for_writing and text.lower().endswith(endings_of_others):
            raise UnsupportedFormat(f"{shortened(text)} {what}")
    raise UnsupportedFormat(f"{shortened(text)!r} cannot be {verb}, its kind is not known: understood are {endings}")


def meant(source: str) -> str | None:
    """Return a correction of a misspelt source, or None without a suggestion.

    >>> meant("(ab)*"), meant("mod_arit(5)"), meant("ModArith(5)"), meant("Task: parity"), meant("machine.xyz")
    ('regex:(ab)*', 'task:mod_arith(5)', 'task:mod_arith(5)', 'task:parity', None)
    """
    tasks: Iterable[str] = _loaded("zoo:TASKS")
    if prefix := _PREFIX.fullmatch(source):
        return f"{prefix[1].lower()}:{prefix[2]}"
    if call := _CALL.fullmatch(source):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", call[1]).lower()  # papers write ModArith(5)
        if near := difflib.get_close_matches(name, tasks, 1, 0.8):
            return f"task:{near[0]}{call[2] or ''}"
    return f"regex:{source}" if _OPERATORS & set(source) else None


def _check_characters(source: str, form: SourceFormat) -> None:
    """Raise `UnsupportedFormat` for lone surrogates, by which Python represents arguments that are not UTF-8."""
    if half := next((c for c in source if "\ud800" <= c <= "\udfff"), None):
        raise UnsupportedFormat(
            f"{form.name} {shortened(source)!r} is not UTF-8 ({half!r} at position {source.index(half) + 1}): write "
            "it in that encoding"
        )


def _symbol_tables(path: Path, options: dict[str, Any]) -> dict[str, str]:
    tables: dict[str, str] = {}
    for name, endings in _SYMBOL_TABLES.items():
        siblings = [_sibling(path, ending) for ending in endings]
        chosen = options.get(name)
        table = Path(chosen) if chosen is not None else next((b for b in siblings if b.is_file()), None)
        if table is not None:
            tables[name] = _read_text(table)
    return tables


def _sibling(path: Path, ending: str) -> Path:
    written = next(e for e in _format_of(path, for_writing=False).endings if path.name.lower().endswith(e))
    return path.with_name(path.name[: -len(written)] + ending)


def _read_text(path: Path) -> str:
    """Return the text of a regular, non-empty file of at most `MAX_FILE_BYTES`, checked before it is read."""
    try:
        if path.is_dir():
            raise UnsupportedFormat(f"{path} is a directory: name one of its files")
        if not path.exists():
            raise MissingFile(f"no such file: {path}")
        if not path.is_file():
            raise UnsupportedFormat(f"{path} is not a regular file: copy what it holds to one")
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise BudgetExceeded(
                f"{path} has {size:,} bytes, the limit is {MAX_FILE_BYTES:,}: minimise the automaton with the tool "
                "that wrote it, or build the MooreMachine in Python"
            )
        data = path.read_bytes()
    except MissingFile:
        raise
    except OSError as fault:
        raise UnsupportedFormat(f"{path} cannot be read ({fault.strerror}): check the path and its rights") from None
    if not data.strip():
        raise UnsupportedFormat(f"{path} is empty: was it written to the end?")
    return decode(data, str(path))


__all__ = ["FORMATS", "SourceFormat", "check_target", "options_of", "read_source", "write_file"]
