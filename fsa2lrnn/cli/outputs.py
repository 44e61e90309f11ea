"""Checks of output paths, made before any work so that a verb fails early."""

from __future__ import annotations

from pathlib import Path

from fsa2lrnn.cli.options import MODEL_SUFFIX, DrawFormat
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import check_file, check_folder


def check_model(path: Path | None) -> None:
    """Raise `UnsupportedFormat` for a path that is not of a model file, `OSError` for one that cannot be written."""
    _check(path, "a model", MODEL_SUFFIX)


def check_machine(path: Path | None) -> None:
    """Check that an automaton can be written to this path, as `check_model` does."""
    if path is not None:
        from fsa2lrnn.automata.formats import check_target

        check_target(path)


def check_certificate(path: Path | None) -> None:
    """Check that a certificate can be written to this path, as `check_model` does."""
    _check(path, "a certificate", ".json")


def check_proof(path: Path | None) -> None:
    """Check that a proof by enumeration can be written to this path, before any work."""
    _check(path, "a proof", ".safetensors")


def check_page(path: Path) -> None:
    """Check that a report and its JSON file can be written to this path, as `check_model` does."""
    _check(path, "the page", ".html")
    check_file(path.with_suffix(".json"))


def check_drawing(path: Path | None) -> None:
    """Check that a cascade's drawing can be written to this path, as `check_model` does."""
    _check(path, "a drawing", ".svg", ".dot", ".gv")


def drawing_format(path: Path | None, requested: DrawFormat | None) -> DrawFormat:
    """Return the format that `draw` writes, as requested or by the path's ending.

    Raises `UnsupportedFormat` if the two differ or a page or PNG has no file, `OSError` for an unwritable path.
    """
    by_ending: dict[str, DrawFormat] = {".html": "html", ".svg": "svg", ".png": "png", ".dot": "dot", ".gv": "dot"}
    if path is None:
        if requested in ("svg", "dot"):
            return requested
        raise UnsupportedFormat("give -o page.html for the page; --format svg and --format dot print without a file")
    chosen = requested or by_ending.get(path.suffix)
    if chosen is None:
        raise UnsupportedFormat(f"output {path}: write a file ending in {', '.join(by_ending)}, or name the --format")
    if by_ending.get(path.suffix, chosen) != chosen:
        raise UnsupportedFormat(f"output {path} and --format {chosen} are two formats: leave one of them out")
    check_file(path)
    return chosen


def check_plot(path: Path | None) -> None:
    """Check that a plot of curves can be written to this path, as `check_model` does."""
    _check(path, "a plot", ".svg", ".png", ".pdf")


def check_svg(path: Path | None) -> None:
    """Check that an SVG picture can be written to this path, as `check_model` does."""
    _check(path, "the picture", ".svg")


def check_runs(folder: Path | None) -> None:
    """Raise `OSError` unless the folder, created if missing, can hold files."""
    if folder is not None:
        check_folder(folder)


def _check(path: Path | None, what: str, *endings: str) -> None:
    if path is None:
        return
    if path.suffix not in endings:
        raise UnsupportedFormat(f"output {path}: {what} is written to a file ending in {' or '.join(endings)}")
    check_file(path)
