"""Permutation machines in a given number of layers (T38 of docs/theory.md): series of normal subgroups."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.elements import Images
from fsa2lrnn.automata.monoid.facts import Action
from fsa2lrnn.automata.monoid.subgroups import generating_set
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine
from fsa2lrnn.extra.block_size import minimal_block
from fsa2lrnn.extra.block_size.answer import Field
from fsa2lrnn.families.groups import PermutationGroup, composition_factors, group_of

MAX_SETS = 20_000

# The least degree over C, R, Q of a finite group of matrices with this quotient: T37, with its sources.
DEGREES: dict[str, dict[Field, int]] = {
    "A5": {"C": 2, "R": 3, "Q": 4},
    "PSL(2,7)": {"C": 3, "R": 6, "Q": 6},
    "A6": {"C": 3, "R": 5, "Q": 5},
}
_UNKNOWN: dict[Field, int] = {"C": 2, "R": 3, "Q": 4}  # of a simple group that is not abelian, at least


@dataclass(frozen=True)
class AnyDepth:
    """The least b for which some stack of layers of blocks of size at most b runs the machine, or an interval.

    Args:
        lower: no stack of smaller blocks runs it.
        upper: some stack of blocks of this size does.
        factors: the simple groups in its monoid that were found, by name.
        note: why the bounds don't meet, if they don't.
    """

    lower: int
    upper: int
    factors: tuple[str, ...]
    note: str

    @property
    def value(self) -> int | None:
        """The least size b, if the bounds meet."""
        return self.lower if self.lower == self.upper else None


def any_depth(machine: MooreMachine, field: Field = "R") -> AnyDepth:
    """Return the least block size with any number of layers, from the composition factors of the monoid's groups.

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
    return AnyDepth(lower, upper, tuple(sorted(factors)), "" if lower == upper else "; ".join(notes))


def degree(name: str, field: Field) -> tuple[int, int | None]:
    """Return bounds on the least degree of a finite group of matrices with a simple quotient; None: no upper bound.

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


MAX_ORDER = 200
_NONE = 10**9  # no series yet


@dataclass(frozen=True)
class DepthBound:
    """The least b for which a number of layers of blocks of size at most b runs a permutation machine, or an interval.

    Args:
        layers: how many.
        lower: no blocks smaller than that do.
        upper: blocks of this size do.
        orders: of the factors of a series of normal subgroups with blocks of size `upper`, from below.
    """

    layers: int
    lower: int
    upper: int
    orders: tuple[int, ...]

    @property
    def value(self) -> int | None:
        """The least size b, if the bounds meet."""
        return self.lower if self.lower == self.upper else None


def layered(machine: MooreMachine, layers: int, field: Field = "R") -> DepthBound:
    """Return the least block size for a permutation machine in a number of layers, with finitely many reached vectors.

    Raises:
        InvalidMachine: if a letter does not permute the states of the minimal machine.
        BudgetExceeded: if its group has more than `MAX_ORDER` elements.

    >>> from fsa2lrnn.automata import zoo
    >>> layered(zoo.group("S3"), 2, "C").value, layered(zoo.group("S4"), 2, "R").value
    (1, 2)
    """
    minimal = minimise(machine)
    n = minimal.n_states
    odd = next((a for a, row in enumerate(minimal.delta) if len(np.unique(row)) < n), None)
    if odd is not None:
        raise InvalidMachine(f"letter {minimal.alphabet[odd]!r} does not permute the states: take `any_depth`")
    found = group_of(minimal.delta, MAX_ORDER)
    if found is None:
        raise BudgetExceeded(f"the group of the {n} states has more than {MAX_ORDER} elements")
    group, _ = found
    normal = group.normal_subgroups
    # Least over the series from 1 to each normal subgroup: (lower bound, upper bound, orders of the factors).
    ends = [(1, 1, tuple[int, ...]())] + [(_NONE, _NONE, tuple[int, ...]())] * (len(normal) - 1)
    bounds: dict[tuple[int, int], tuple[int, int]] = {}
    for _ in range(layers):
        longer = list(ends)
        for i, small in enumerate(normal):
            for j, large in enumerate(normal):
                if (small & ~large).any() or i == j:
                    continue
                if (i, j) not in bounds:
                    bounds[i, j] = _bounds(group.restricted(large).quotient(small[large]), field)
                low, high = bounds[i, j]
                low, high = max(ends[i][0], low), max(ends[i][1], high)
                orders = (*ends[i][2], int(large.sum()) // int(small.sum()))
                best = longer[j]
                high, orders = (best[1], best[2]) if best[1] <= high else (high, orders)
                longer[j] = min(best[0], low), high, orders
        ends = longer
    return DepthBound(layers, *ends[-1])


def _bounds(group: PermutationGroup, field: Field) -> tuple[int, int]:
    if group.order == 1:
        return 1, 1
    if group.is_abelian if field == "C" else group.is_elementary_two:
        return 1, 1
    needed = max(degree(name, field)[0] for name in composition_factors(group))
    low = max(needed, 2)  # only the groups above need no more than 1
    if field == "R" and low == 2 and not _is_almost_dihedral(group):
        low = 3
    moves = group.table.T  # by the elements, from the right
    chosen = generating_set(moves.astype(np.uint32), group.order)
    regular = MooreMachine(moves[chosen], range(group.order))
    return low, max(low, minimal_block(regular, field).upper)


def _is_almost_dihedral(group: PermutationGroup) -> bool:
    return any(
        group.restricted(mask).is_abelian and group.quotient(mask).is_elementary_two for mask in group.normal_subgroups
    )
