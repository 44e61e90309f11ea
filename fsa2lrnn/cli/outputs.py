"""Checks of output paths, made before any work so that a verb fails early."""

from __future__ import annotations

from pathlib import Path

from fsa2lrnn.cli.options import MODEL_SUFFIX
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import check_file, check_folder


def check(path: Path | None, what: str, *endings: str) -> None:
    """Raise `UnsupportedFormat` for a path without one of the endings, `OSError` for one that cannot be written."""
    if path is None:
        return
    if path.suffix not in endings:
        raise UnsupportedFormat(f"output {path}: {what} is written to a file ending in {' or '.join(endings)}")
    check_file(path)


def check_model(path: Path | None) -> None:
    """Raise `UnsupportedFormat` or `OSError` unless a model can be written to this path."""
    check(path, "a model", MODEL_SUFFIX)


def check_machine(path: Path | None) -> None:
    """Raise `UnsupportedFormat` unless an automaton can be written to this path."""
    if path is not None:
        from fsa2lrnn.automata.formats import check_target

        check_target(path)


def check_runs(folder: Path | None) -> None:
    """Raise `OSError` unless the folder, created if missing, can hold files."""
    if folder is not None:
        check_folder(folder)
