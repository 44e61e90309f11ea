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
        settings[name.strip()] = setting_value(value)
    return settings


def setting_value(text: str) -> Any:
    """Return the value of a JSON text or of None, True and False in Python's spelling, else the text itself."""
    if text.strip() in _PYTHON:
        return _PYTHON[text.strip()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
