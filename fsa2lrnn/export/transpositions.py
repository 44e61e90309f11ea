"""Plan components that move by transpositions between two sets of their points, as heads of a gated delta layer.

Point t has the coordinates 2t and 2t + 1, and the key of the transposition (i j) is ½ on those of i and j. Two such
keys have the product 1, ½ or 0. The roots eᵢ − eⱼ of the group Sₙ have the same products if i is always in a first set
and j in a second one. So these transpositions are reflections I − 2kkᵀ whose keys are dyadic and not negative: a point
of the first set is represented by the vector ½ on its coordinates, a point of the second set by −½.

The start is in the first set and has S = 0. At another point S is the start's vector minus the point's, times 2V. So
a letter writes the value V if it moves the start and 0 if not. Resets have α = 0: β = 0 leads to the start, and the key
of the transposition of the start and a point of the second set leads to that point. A coordinate of a point other than
the start is 0 unless the component is at this point; one head per point reads it, and all heads have the same S.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.export.plan import UNIT, Orbit, StageHead


def two_sides(n: int, start: int, pairs: list[tuple[int, int]], targets: list[int]) -> np.ndarray | None:
    """Split n points into two sets: return whether each point is in the second set, bool (n,), or None if impossible.

    Args:
        n: the number of points.
        start: a point of the first set.
        pairs: pairs of points that must be in different sets.
        targets: points of the second set, except for the start.

    >>> two_sides(3, 0, [(0, 1), (1, 2)], []).tolist(), two_sides(3, 0, [(0, 1), (1, 2), (2, 0)], [])
    ([False, True, False], None)
    """
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for i, j in pairs:
        neighbours[i].append(j)
        neighbours[j].append(i)
    side = {start: False, **{t: True for t in targets if t != start}}
    for first in (*tuple(side), *range(n)):  # first the points whose set is known
        side.setdefault(first, False)
        stack = [first]
        while stack:
            point = stack.pop()
            for other in neighbours[point]:
                if other not in side:
                    side[other] = not side[point]
                    stack.append(other)
                elif side[other] == side[point]:
                    return None
    return np.array([side[point] for point in range(n)])


def moves_by_transpositions(maps: np.ndarray, start: int) -> np.ndarray | None:
    """Return the two sets of `two_sides` if maps, int (L, n), are transpositions between them, resets or the identity.

    The result is None for other maps.

    >>> moves_by_transpositions(np.array([[1, 0, 2], [2, 2, 2]]), 0).tolist()
    [False, True, True]
    """
    identity = np.arange(maps.shape[1])
    constant = (maps == maps[:, :1]).all(axis=1)
    moving = maps[~constant & (maps != identity).any(axis=1)]
    if ((moving != identity).sum(axis=1) != 2).any() or (np.sort(moving, axis=1) != identity).any():
        return None
    pairs = [(int(i), int(j)) for i, j in (np.flatnonzero(row != identity) for row in moving)]
    return two_sides(len(identity), start, pairs, maps[constant, 0].tolist())


def transposition_heads(maps: np.ndarray, start: int) -> tuple[Orbit, ...]:
    """Return one head for each point but the start; its mark is 0 unless the component is at that point.

    `maps` has the map of each symbol, int (n_symbols, n). Raises `ValueError` unless `moves_by_transpositions` accepts
    it.
    """
    n_symbols, n = maps.shape
    side = moves_by_transpositions(maps, start)
    if side is None:
        raise ValueError(f"maps {maps.tolist()} are not transpositions between two sets: check them beforehand")
    vectors, signs = np.repeat(np.eye(n), 2, axis=1), np.where(side, -1.0, 1.0)
    keys, values = np.zeros((n_symbols, 2 * n)), np.zeros((n_symbols, 1))
    alphas, betas = np.ones(n_symbols), np.zeros(n_symbols)
    for a, row in enumerate(maps):
        moved = np.flatnonzero(row != np.arange(n))
        if len(moved) and (row == row[0]).all():
            alphas[a], moved = 0.0, np.array([start, row[0]])
        if len(set(moved)) == 2:
            keys[a], betas[a] = 0.5 * vectors[moved].sum(axis=0), 2.0
            values[a] = UNIT * (start in moved)
    # S at each point: the start's vector minus the point's, with the sign of the point's set.
    differences = UNIT * (vectors[start] - signs[:, None] * vectors)
    states = tuple(difference[:, None] for difference in differences)
    return tuple(
        Orbit(
            StageHead(keys, values, alphas, betas, np.eye(2 * n)[2 * t], np.array([-signs[t]])),
            states,
            maps,
            np.array([[0.0], [-signs[t]]]),
        )
        for t in range(n)
        if t != start
    )
