"""The least block size for any number of layers, determined by the composition factors of the monoid's groups (T37)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.elements import Images
from fsa2lrnn.automata.monoid.facts import Action
from fsa2lrnn.extra.block_size.answer import Field, SizeBounds
from fsa2lrnn.families.groups import composition_factors, group_of

MAX_SETS = 20_000  # the most images of words that are enumerated

# The least degree over C, R, Q of a finite group of matrices with this quotient (T37 cites the sources).
DEGREES: dict[str, dict[Field, int]] = {
    "A5": {"C": 2, "R": 3, "Q": 4},
    "PSL(2,7)": {"C": 3, "R": 6, "Q": 6},
    "A6": {"C": 3, "R": 5, "Q": 5},
}
_UNKNOWN: dict[Field, int] = {"C": 2, "R": 3, "Q": 4}  # lower bounds for all non-abelian simple groups


@dataclass(frozen=True)
class AnyDepth(SizeBounds):
    """Bounds on the least b for which some stack of layers of blocks of size at most b runs the machine.

    Args:
        factors: the names of the composition factors found in the groups of the transition monoid.
    """

    factors: tuple[str, ...]


def any_depth(machine: MooreMachine, field: Field = "R") -> AnyDepth:
    """Return bounds on the least block size for any number of layers, by the groups of the transition monoid (T37).

    >>> from fsa2lrnn.automata import zoo
    >>> [any_depth(machine).value for machine in (zoo.dyck(2, 2), zoo.sum_mod(5), zoo.group("A5"))]
    [1, 2, 3]
    """
    minimal = minimise(machine)
    images = Images(Action.of(minimal), MAX_SETS)
    factors: Counter[str] = Counter()
    lower, upper, notes = 1, 1, list[str]()
    for root in images.roots():
        permutations, _ = images.generators(root)
        found = group_of(permutations)
        if found is None:
            points = permutations.shape[1]
            upper = max(upper, points - 1)
            notes.append(f"the group of an image of {points} states is too large to be listed")
            continue
        factors += composition_factors(found[0])
    if not images.whole:
        upper = max(upper, minimal.n_states - 1)
        notes.append(f"only {images.cap:,} images were looked at")
    for name in factors:
        least, enough = degree(name, field)
        lower = max(lower, least)
        upper = max(upper, enough if enough is not None else minimal.n_states - 1)
        if enough is None:
            notes.append(f"the degrees of the {name} are not in the table")
    return AnyDepth(lower, upper, "" if lower == upper else "; ".join(notes), tuple(sorted(factors)))


def degree(name: str, field: Field) -> tuple[int, int | None]:
    """Return bounds on d_K(G) of T37, K = `field` and G the simple group `name`; the upper one is None if unknown.

    d_K(G) is the least degree of a finite group of matrices over K that has G as a quotient.

    >>> degree("Z7", "R"), degree("Z7", "Q"), degree("simple of order 504", "R")
    ((2, 2), (6, 6), (3, None))
    """
    if cyclic := re.fullmatch(r"Z(\d+)", name):
        p = int(cyclic[1])
        d = 1 if p == 2 or field == "C" else 2 if field == "R" else p - 1
        return d, d
    if name in DEGREES:
        return DEGREES[name][field], DEGREES[name][field]
    return _UNKNOWN[field], None
