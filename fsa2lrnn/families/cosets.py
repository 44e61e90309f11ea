"""Permuting letters on fewer points than states: cosets of subgroups of the group that the letters generate (T7).

Each letter permutes the points as it does the cosets, and the vectors of the states are integers on the points that no
letter changes, only moves: x_{δ(q,a)} at the image of a point is x_q there. On the coset of x such an x_q is a function
of the orbit of q x⁻¹ under the subgroup, any function; where all orbits have different numbers, these points separate
as many states as possible. S₄ has 24 states and needs 4 points.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fsa2lrnn.families.groups import PermutationGroup, group_of, subgroups

MAX_ORDER = 200
MAX_SUBGROUPS = 3_000
_TOGETHER = 3  # kinds of cosets at once
_KINDS = 40


@dataclass(frozen=True, eq=False)
class Points:
    """Points that letters permute, with one integer vector per state.

    Args:
        moves: int64 (m, d), the image of each point under each letter.
        vectors: int64 (n, d), of the states.
    """

    moves: np.ndarray
    vectors: np.ndarray

    @property
    def factors(self) -> np.ndarray:
        """The number of transpositions of each letter, d − #cycles: int64 (m,)."""
        return np.array([len(transpositions(row)) for row in self.moves], np.int64)

    @property
    def tells_all_apart(self) -> bool:
        """Whether no two states have the same vector."""
        return len(np.unique(self.vectors, axis=0)) == len(self.vectors)


def fewest_points(permutations: np.ndarray, with_resets: bool) -> Points | None:
    """Return points on which the letters (m, n) need the fewest factors, among cosets of up to three kinds.

    Args:
        with_resets: whether the machine also has a constant letter, which takes one factor per point.

    Returns None where the group has more than 200 elements or 3,000 subgroups, or no such points separate all states.

    >>> from fsa2lrnn.automata import zoo
    >>> points = fewest_points(zoo.group("S4").delta, False)
    >>> points.vectors.shape, int(points.factors.max())
    ((24, 4), 3)
    """
    if not len(permutations) or (listed := group_of(permutations, MAX_ORDER)) is None:
        return None
    group, elements = listed
    if (masks := subgroups(group, MAX_SUBGROUPS)) is None:
        return None
    number = {row.tobytes(): i for i, row in enumerate(elements)}
    letters = [number[np.ascontiguousarray(row, np.int64).tobytes()] for row in permutations]
    kinds: dict[tuple[bytes, bytes], tuple[np.ndarray, Points]] = {}
    for mask in sorted(masks, key=lambda mask: -int(mask.sum())):
        points = _on_cosets(group, elements, letters, mask)
        classes = np.unique(points.vectors, axis=0, return_inverse=True)[1].astype(np.int64)
        needed = np.append(points.factors, points.moves.shape[1])  # of each letter, and of all points
        kinds.setdefault((needed.tobytes(), classes.tobytes()), (needed, points))

    def cost(several: tuple[tuple[np.ndarray, Points], ...]) -> tuple[int, int]:
        *letters, d = np.sum([needed for needed, _ in several], axis=0).tolist()
        return max([d * with_resets, *letters]), d

    best: tuple[tuple[int, int], Points] | None = None
    chosen = sorted(kinds.values(), key=lambda kind: cost((kind,)))[:_KINDS]
    for count in range(1, _TOGETHER + 1):
        for several in combinations(chosen, count):
            if best is None or cost(several) < best[0]:
                points = _disjoint_union([points for _, points in several])
                if points.tells_all_apart:
                    best = cost(several), points
    return None if best is None else best[1]


def _on_cosets(group: PermutationGroup, elements: np.ndarray, letters: list[int], mask: np.ndarray) -> Points:
    members = np.flatnonzero(mask)
    least = group.table[members].min(0)  # of Hx, for each x
    chosen, coset = np.unique(least, return_inverse=True)
    orbit = np.unique(elements[members].min(0), return_inverse=True)[1]  # of each state under H
    back = elements[group.inverse[chosen]]  # (d, n), q x⁻¹
    return Points(np.stack([coset[group.table[chosen, a]] for a in letters]).astype(np.int64), orbit[back].T)


def _disjoint_union(several: list[Points]) -> Points:
    starts = np.cumsum([0, *(points.moves.shape[1] for points in several)])
    moves = [points.moves + start for points, start in zip(several, starts[:-1], strict=True)]
    return Points(np.concatenate(moves, 1), np.concatenate([points.vectors for points in several], 1))


def transpositions(permutation: np.ndarray) -> list[tuple[int, int]]:
    """Return n − #cycles transpositions whose product, the first applied first, is the permutation.

    >>> transpositions(np.array([1, 2, 0, 3]))
    [(0, 1), (0, 2)]
    """
    factors: list[tuple[int, int]] = []
    visited: set[int] = set()
    for q in range(len(permutation)):
        cycle: list[int] = []
        while q not in visited:
            visited.add(q)
            cycle.append(q)
            q = int(permutation[q])
        factors += [(cycle[0], other) for other in cycle[1:]]
    return factors
