"""Compute with small groups by their multiplication tables: subgroups, quotients and composition factors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import isqrt

import numpy as np

from fsa2lrnn.automata.monoid.subgroups import elements, generating_set

MAX_ORDER = 2_000
SIMPLE = {60: "A5", 168: "PSL(2,7)", 360: "A6"}  # the only simple groups of their orders


@dataclass(frozen=True, eq=False)
class PermutationGroup:
    """A group whose elements are numbers, 0 the identity.

    Args:
        table: `table[g, h]` is the number of g followed by h, int, shape (N, N).
    """

    table: np.ndarray

    @property
    def order(self) -> int:
        """The number of elements, N."""
        return len(self.table)

    @cached_property
    def inverse(self) -> np.ndarray:
        """The inverse of each element, shape (N,)."""
        return np.argmax(self.table == 0, axis=1)

    def closure(self, members: np.ndarray) -> np.ndarray:
        """Return the subgroup that the masked elements generate, as a mask (N,)."""
        inside = np.zeros(self.order, bool)
        inside[0] = True
        generators: list[int] = []
        for g in np.flatnonzero(members).tolist():
            if inside[g]:
                continue
            generators.append(g)
            # The finite set is closed under products with the generators from the right, which makes it a subgroup.
            new = np.flatnonzero(inside)
            while len(new):
                images = np.unique(self.table[new][:, generators])
                new = images[~inside[images]]
                inside[new] = True
        return inside

    def conjugates(self, g: int) -> np.ndarray:
        """Return the conjugates of an element, as a mask (N,)."""
        mask = np.zeros(self.order, bool)
        # All h⁻¹ g h at once: entry h of the inner table is h⁻¹ g.
        mask[self.table[self.table[self.inverse, g], np.arange(self.order)]] = True
        return mask

    @cached_property
    def representatives(self) -> list[int]:
        """The numbers of one element of each conjugacy class."""
        covered, chosen = np.zeros(self.order, bool), list[int]()
        for g in range(self.order):
            if not covered[g]:
                chosen.append(g)
                covered |= self.conjugates(g)
        return chosen

    def normal_closure(self, g: int) -> np.ndarray:
        """Return the normal closure of an element, as a mask (N,)."""
        return self.closure(self.conjugates(g))

    def restricted(self, mask: np.ndarray) -> PermutationGroup:
        """Return a subgroup, given as a mask (N,), as a group."""
        members = np.flatnonzero(mask)
        number = np.full(self.order, -1)
        number[members] = np.arange(len(members))
        return PermutationGroup(number[self.table[np.ix_(members, members)]])

    def quotient(self, mask: np.ndarray) -> PermutationGroup:
        """Return the quotient by a normal subgroup, given as a mask (N,)."""
        members = np.flatnonzero(mask)
        first = self.table[:, members].min(axis=1)  # the least element of each coset names it
        representatives = np.unique(first)
        number = np.full(self.order, -1)
        # Representatives are sorted, so that the coset of the identity, element 0, becomes element 0.
        number[representatives] = np.arange(len(representatives))
        return PermutationGroup(number[first[self.table[np.ix_(representatives, representatives)]]])


def group_of(permutations: np.ndarray, limit: int = MAX_ORDER) -> tuple[PermutationGroup, np.ndarray] | None:
    """Return the group that permutations (m, n) generate and its elements (N, n), or None if N > `limit`.

    >>> group_of(np.array([[1, 2, 0], [1, 0, 2]]))[0].order
    6
    """
    rows = permutations.astype(np.uint32)
    listed = elements(rows[generating_set(rows, limit)], limit)
    if listed is None:
        return None
    codes = _codes(listed)
    order = np.argsort(codes)
    # `listed[:, g]` has in row h the map "g, then h"; rows are found by their bytes in sorted order.
    table = [order[np.searchsorted(codes[order], _codes(listed[:, g]))] for g in listed]
    return PermutationGroup(np.array(table)), listed.astype(np.int64)


def _codes(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()


def composition_factors(group: PermutationGroup) -> Counter[str]:
    """Return the multiplicity of each composition factor, named "Z7", as in `SIMPLE`, or "simple of order N".

    >>> group, _ = group_of(np.array([[1, 2, 3, 0], [1, 0, 2, 3]]))
    >>> sorted(composition_factors(group).items())
    [('Z2', 3), ('Z3', 1)]
    """
    if group.order == 1:
        return Counter()
    # A minimal normal subgroup is the normal closure of each of its elements but 1, and one element per conjugacy class
    # is enough.
    smallest = min((group.normal_closure(g) for g in group.representatives[1:]), key=np.count_nonzero)
    if smallest.all():
        return Counter([_name(group.order)])
    return composition_factors(group.restricted(smallest)) + composition_factors(group.quotient(smallest))


def _name(order: int) -> str:
    # A simple group is abelian only if it is cyclic of prime order.
    if all(order % p for p in range(2, isqrt(order) + 1)):
        return f"Z{order}"
    return SIMPLE.get(order, f"simple of order {order}")


def subgroups(group: PermutationGroup, limit: int) -> list[np.ndarray] | None:
    """Return all subgroups as masks (N,), or None if there are more than `limit`."""
    trivial = np.zeros(group.order, bool)
    trivial[0] = True
    cyclic = {mask.tobytes(): mask for mask in (group.closure(np.arange(group.order) == g) for g in range(group.order))}
    masks = {trivial.tobytes(): trivial}
    queue = [trivial]
    # Every subgroup is reached by adding cyclic subgroups one at a time; the list grows while it is read.
    for mask in queue:
        for other in cyclic.values():
            if (other & ~mask).any():
                joined = group.closure(mask | other)
                if joined.tobytes() not in masks:
                    masks[joined.tobytes()] = joined
                    queue.append(joined)
                    if len(masks) > limit:
                        return None
    return list(masks.values())
