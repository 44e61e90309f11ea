"""Suggest the source that was meant where its kind is missing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_PREFIX = re.compile(r"\s*(regex|task)\s*:\s*(.*)", re.IGNORECASE | re.DOTALL)
_CALL = re.compile(r"\s*(\w+)\s*(\(.*)?\s*", re.DOTALL)
_OPERATORS = frozenset("()*+|?[]{}&^")


def meant(source: str, tasks: Iterable[str]) -> str | None:
    """Return the source that was probably meant, or None if no correction suggests itself; `tasks` are names.

    >>> [meant(source, ["mod_arith"]) for source in ("(ab)*", "mod_arit(5)", "Task: parity", "machine.xyz")]
    ['regex:(ab)*', 'task:mod_arith(5)', 'task:parity', None]
    """
    if prefix := _PREFIX.fullmatch(source):
        return f"{prefix[1].lower()}:{prefix[2]}"
    if (call := _CALL.fullmatch(source)) and (near := difflib.get_close_matches(call[1], tasks, 1, 0.8)):
        return f"task:{near[0]}{call[2] or ''}"
    return f"regex:{source}" if _OPERATORS & set(source) else None
