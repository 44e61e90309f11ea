"""Parsers of text options with several values."""

from __future__ import annotations

import json
from typing import Any

from fsa2lrnn.errors import UnsupportedFormat

_PYTHON = {"None": None, "True": True, "False": False}  # the spellings in printed settings


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """Return numbers separated by commas; raise `UnsupportedFormat` naming the option.

    >>> whole_numbers("0, 1,2", "--seeds")
    (0, 1, 2)
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UnsupportedFormat(f"{option} {text!r}: give whole numbers separated by commas, 0,1,2") from None


def assignments(texts: list[str]) -> dict[str, Any]:
    """Return NAME=VALUE texts as a dictionary; raise `UnsupportedFormat` for other texts.

    >>> assignments(["layers=3", "optimiser=adamw", "stop_at=None"])
    {'layers': 3, 'optimiser': 'adamw', 'stop_at': None}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise UnsupportedFormat(f"--set {text!r}: write NAME=VALUE, layers=3")
        settings[name.strip()] = _value(value)
    return settings


def named_assignments(texts: list[str]) -> dict[str, dict[str, Any]]:
    """Return NAME:KEY=VALUE,… texts as a dictionary of dictionaries; raise `UnsupportedFormat` for other texts.

    >>> named_assignments(["fast:learning_rate=0.01,optimiser=adamw"])
    {'fast': {'learning_rate': 0.01, 'optimiser': 'adamw'}}
    """
    settings: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, _, changes = text.partition(":")
        settings[name] = {}
        for change in changes.split(","):
            key, sign, value = change.partition("=")
            if not (name and key.strip() and sign):
                raise UnsupportedFormat(f"--set {text!r}: write NAME:KEY=VALUE, fast:learning_rate=0.001,layers=2")
            settings[name][key.strip()] = _value(value)
    return settings


def noise(text: str | None) -> float | None:
    """Return a share, or None for "unknown" and for no text; raise `UnsupportedFormat` for other texts.

    >>> noise("0.1"), noise("unknown")
    (0.1, None)
    """
    if text is None or text == "unknown":
        return None
    try:
        return float(text)
    except ValueError:
        raise UnsupportedFormat(f"--label-noise {text!r}: give a share as 0.1, or unknown") from None


def _value(text: str) -> Any:
    """Return the value of a JSON text or of None, True and False in Python's spelling, else the text itself."""
    if text.strip() in _PYTHON:
        return _PYTHON[text.strip()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
