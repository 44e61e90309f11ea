"""The parts of the names of the languages of MLRegTest."""

from __future__ import annotations

from typing import NamedTuple


class MLRegTestName(NamedTuple):
    """The parts of a name: sizes of the alphabet and of the tier, class, factor width, threshold, number."""

    letters: int
    tier: int
    kind: str
    k: int
    threshold: int
    number: int


def parse_name(name: str) -> MLRegTestName:
    """Return the parts of the name of a language; raise `ValueError` for a text of another form.

    >>> parse_name("04.03.TSL.2.1.0").kind
    'TSL'
    """
    letters, tier, kind, k, threshold, number = name.split(".")
    return MLRegTestName(int(letters), int(tier), kind, int(k), int(threshold), int(number))
