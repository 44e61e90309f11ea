"""Write the letters of an arrow as a short text, and estimate the width of a text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_RUN = 4  # the fewest consecutive letters that are written as a range
_WIDE, _NARROW = 11.5, 6.9  # pixels of a wide character in a label, and of any other


def short_list(given: Sequence[int], alphabet: Sequence[str], most: int = 16, names_others: bool = True) -> str:
    """Return the letters with numbers `given` as text, in order, shortened to `most` characters.

    Unless `names_others` is False, the text is "any" for all letters, and "not …" if few letters are missing.

    >>> digits = [*"0123456789", "+"]
    >>> short_list(range(10), digits), short_list([1, 2, 10], digits), short_list(range(11), digits)
    ('0–9', '1, 2, +', 'any')
    >>> short_list([0, 1, 2, 3, 4, 6, 7, 8, 9, 10], digits), short_list([0], ["a long name of a letter"])
    ('not 5', 'a long name of …')

    One letter alone is called by its name, however short the others' are.

    >>> short_list([0], ["tick tock", "-"])
    'tick tock'
    """
    if names_others and len(given) == len(alphabet) > 2:
        return "any"
    rest = sorted(set(range(len(alphabet))) - set(given))
    text = ", ".join(_runs(sorted(given), alphabet))
    others = "not " + ", ".join(alphabet[a] for a in rest)
    if names_others and len(given) > 1 and 0 < len(rest) <= 2 and len(others) < len(text):
        text = others
    return text if len(text) <= most else f"{text[: most - 1]}…"


def width(text: str) -> float:
    """Return an upper estimate of the width of a label in pixels, because fonts differ."""
    return sum(_WIDE if unicodedata.east_asian_width(c) in "WF" else _NARROW for c in text) + 2


def _runs(given: list[int], alphabet: Sequence[str]) -> list[str]:
    runs: list[list[str]] = []
    for a in given:
        if runs and _follows(runs[-1][-1], alphabet[a]):
            runs[-1].append(alphabet[a])
        else:
            runs.append([alphabet[a]])
    return [name for run in runs for name in ([f"{run[0]}–{run[-1]}"] if len(run) >= _RUN else run)]


def _follows(a: str, b: str) -> bool:
    return len(a) == len(b) == 1 and ord(b) == ord(a) + 1 and a.isalnum() and b.isalnum()
