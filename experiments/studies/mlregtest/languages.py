"""The languages of MLRegTest in a folder of `.att` files, in an order whose every beginning is stratified."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path

from experiments.studies.mlregtest.names import parse_name
from fsa2lrnn.errors import UnsupportedFormat


def names(folder: Path, seed: int = 29) -> list[str]:
    """Return the names of all languages: one of each alphabet size and class in turn, drawn by the seed.

    Raises `UnsupportedFormat` for a folder without such files.
    """
    groups = defaultdict[tuple[int, str], list[str]](list)
    for path in sorted(folder.glob("*.att")):
        parsed = parse_name(path.stem)
        groups[parsed.letters, parsed.kind].append(path.stem)
    if not groups:
        raise UnsupportedFormat(f"{folder} has no .att file: extract the automata of MLRegTest there")
    draw = random.Random(seed)
    for group in groups.values():
        draw.shuffle(group)
    rounds = zip_longest(*(groups[key] for key in sorted(groups)))
    return [name for name in chain.from_iterable(rounds) if name is not None]
