"""The languages of MLRegTest in a folder of `.att` files, in an order whose every beginning is stratified."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path

from fsa2lrnn.automata.formats.openfst import from_openfst
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat

SIZES = ("04", "16", "64")
CLASSES = ("SL", "TSL", "SP", "LT", "TLT", "PT", "LTT", "TLTT", "PLT", "TPLT", "SF", "Zp", "Reg")


def names(folder: Path, seed: int = 29) -> list[str]:
    """Return the names of all languages: one of each alphabet size and class in turn, drawn by the seed.

    Raises `UnsupportedFormat` for a folder without such files.
    """
    groups = defaultdict[tuple[str, str], list[str]](list)
    for path in sorted(folder.glob("*.att")):
        groups[size_and_class(path.stem)].append(path.stem)
    if not groups:
        raise UnsupportedFormat(f"{folder} has no .att file: extract the automata of MLRegTest there")
    draw = random.Random(seed)
    for group in groups.values():
        draw.shuffle(group)
    rounds = zip_longest(*(groups[key] for key in sorted(groups)))
    return [name for name in chain.from_iterable(rounds) if name is not None]


def size_and_class(name: str) -> tuple[str, str]:
    """Return the alphabet size and the class in a name.

    >>> size_and_class("04.03.TSL.2.1.0")
    ('04', 'TSL')
    """
    size, _, kind, *_ = name.split(".")
    return size, kind


def machine(folder: Path, name: str) -> MooreMachine:
    """Return the complete automaton of a language; missing transitions reject."""
    return from_openfst((folder / f"{name}.att").read_text(encoding="utf-8"), completion="sink").minimise()
