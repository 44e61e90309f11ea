"""Arguments, options and exit codes that commands share, and what is checked of them before any work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import check_file, endings

NO, BAD_INPUT, INTERRUPTED = 1, 2, 130  # exit codes; 130 is the convention after Ctrl-C
LACKED = "lacked"  # outputs that a trained model lacks do not count; its verdicts state this scope
MODEL_SUFFIX = ".safetensors"
_PYTHON = {"None": None, "True": True, "False": False}  # the spellings in printed settings

# Copies of types elsewhere, because importing these would import torch. A test compares them.
Completion = Literal["error", "sink", "ignore"]
Dtype = Literal["float64", "float32", "bfloat16", "float16"]
ExtractMethod = Literal["closure", "suffixes"]
Form = Literal["onehot", "cascade", "auto"]
MachineKind = Literal["acceptor", "moore", "mealy"]
Normalisation = Literal["clip", "paper", "none", "onehot"]
Preset = Literal["paper", "quick"]

WRITTEN = f"by ending: {endings(for_writing=True)}"
SOURCE = f"regex:…, task:…, or a file ({endings()})"
_RUNNABLE = f"a model ({MODEL_SUFFIX}), a folder that `export` wrote, or a source, which is compiled first"
_TRAINED = f"a trained model ({MODEL_SUFFIX})"
_LETTERS = "its letters: ab or 'up down'; acceptors reject the new ones, see --completion"

Source = Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)]
ModelOrSource = Annotated[str, typer.Argument(metavar="MODEL", help=_RUNNABLE)]
LearnedModel = Annotated[str, typer.Argument(metavar="MODEL", help=_TRAINED)]
AlphabetOption = Annotated[
    str | None, typer.Option(metavar="LETTERS", help=f"read SOURCE over a larger alphabet than {_LETTERS}")
]
SecondsOption = Annotated[
    float,
    typer.Option("--max-seconds", min=0.1, help="limit of processor time per model for the counterexample search"),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--max-seconds",
        min=0.1,
        help="limit of processor time; by default none, so that the computer's speed does not matter; compiling "
        "kernels, once after an installation, is not interrupted",
    ),
]
MachineOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", help=f"write the automaton here, {WRITTEN}", show_default=False),
]
ModelOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help=f"write the new model here ({MODEL_SUFFIX})", show_default=False)
]
CompletionOption = Annotated[
    Completion | None,
    typer.Option(help="where missing transitions lead; by default acceptors reject, others are refused"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="print one JSON object on standard output")]
LengthsOption = Annotated[str, typer.Option(help="lengths of the words on which models are evaluated")]
WordsOption = Annotated[int, typer.Option(min=1, help="fresh words per length")]
LayersOption = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="MODULE:CLASS", help="a user-defined layer that the model has; repeatable"),
]


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """Return numbers separated by commas; raise `UnsupportedFormat` naming the option.

    >>> whole_numbers("0, 1,2", "--seeds")
    (0, 1, 2)
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UnsupportedFormat(f"{option} {text!r}: give whole numbers separated by commas, 0,1,2") from None


def assignments(texts: list[str]) -> dict[str, object]:
    """Return NAME=VALUE texts as a dictionary; raise `UnsupportedFormat` for other texts.

    >>> assignments(["layers=3", "optimiser=adamw", "stop_at=None"])
    {'layers': 3, 'optimiser': 'adamw', 'stop_at': None}
    """
    settings: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise UnsupportedFormat(f"--set {text!r}: write NAME=VALUE, layers=3")
        settings[name.strip()] = setting_value(value)
    return settings


def setting_value(text: str) -> object:
    """Return the value of a JSON text or of None, True and False in Python's spelling, else the text itself."""
    if text.strip() in _PYTHON:
        return _PYTHON[text.strip()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def check_output(path: Path | None, what: str, *endings: str) -> None:
    """Raise `UnsupportedFormat` for a path without one of the endings, `OSError` for one that cannot be written."""
    if path is None:
        return
    if path.suffix not in endings:
        raise UnsupportedFormat(f"output {path}: {what} is written to a file ending in {' or '.join(endings)}")
    check_file(path)


def check_model(path: Path | None) -> None:
    """Raise `UnsupportedFormat` or `OSError` unless a model can be written to this path."""
    check_output(path, "a model", MODEL_SUFFIX)


def check_machine(path: Path | None) -> None:
    """Raise `UnsupportedFormat` unless an automaton can be written to this path."""
    if path is not None:
        from fsa2lrnn.automata.formats import check_target

        check_target(path)
