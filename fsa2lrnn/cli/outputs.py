"""Where verbs write: tried before the work that there is to write, and refused in one line."""

from __future__ import annotations

from pathlib import Path

from fsa2lrnn.cli.options import MODEL_SUFFIX, DrawFormat
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import check_file, check_folder


def check_model(path: Path | None) -> None:
    """Raises `UnsupportedFormat` for a file that no model can be written to, `OSError` for a place that takes none."""
    _check(path, "a model", MODEL_SUFFIX)


def check_machine(path: Path | None) -> None:
    """The same for an automaton."""
    if path is not None:
        from fsa2lrnn.automata.formats import check_target

        check_target(path)


def check_certificate(path: Path | None) -> None:
    """The same for a certificate."""
    _check(path, "a certificate", ".json")


def check_proof(path: Path | None) -> None:
    """Check that a proof by enumeration can be written to this path, before any work."""
    _check(path, "a proof", ".safetensors")


def check_page(path: Path) -> None:
    """The same for a report, and for the facts beside it."""
    _check(path, "the page", ".html")
    check_file(path.with_suffix(".json"))


def check_drawing(path: Path | None) -> None:
    """The same for a drawing of a cascade."""
    _check(path, "a drawing", ".svg", ".dot", ".gv")


def drawing_format(path: Path | None, wanted: DrawFormat | None) -> DrawFormat:
    """What `draw` writes, by its ending unless it is said. Raises `UnsupportedFormat` where the two contradict each
    other, or a page or PNG has no file; `OSError` for a place that takes none."""
    by_ending: dict[str, DrawFormat] = {".html": "html", ".svg": "svg", ".png": "png", ".dot": "dot", ".gv": "dot"}
    if path is None:
        if wanted in ("svg", "dot"):
            return wanted
        raise UnsupportedFormat("give -o page.html for the page; --format svg and --format dot print without a file")
    found = wanted or by_ending.get(path.suffix)
    if found is None:
        raise UnsupportedFormat(f"output {path}: write a file ending in {', '.join(by_ending)}, or name the --format")
    if by_ending.get(path.suffix, found) != found:
        raise UnsupportedFormat(f"output {path} and --format {found} are two formats: leave one of them out")
    check_file(path)
    return found


def check_plot(path: Path | None) -> None:
    """The same for a picture of curves."""
    _check(path, "a plot", ".svg", ".png", ".pdf")


def check_svg(path: Path | None) -> None:
    """The same for a picture that needs no package."""
    _check(path, "the picture", ".svg")


def check_runs(folder: Path | None) -> None:
    """Raises `OSError` unless files can be written in a folder, once it is made."""
    if folder is not None:
        check_folder(folder)


def _check(path: Path | None, what: str, *endings: str) -> None:
    if path is None:
        return
    if path.suffix not in endings:
        raise UnsupportedFormat(f"output {path}: {what} is written to a file ending in {' or '.join(endings)}")
    check_file(path)
