"""Plan heads whose letters are reflections I − 2kkᵀ with dyadic, non-negative unit keys k, so that nothing is rounded.

Keys are e_i, or ½ on four coordinates. The supports of two keys can be chosen so that their product is ½ or 0; the
product of their reflections then has order 3 or 2. Letters that are involutions, whose pairwise products have order 2
or 3, are thus reflections of a group that covers their group, because all relations of a finite simply laced reflection
group are of this kind. Signs are free: a root may be replaced by its negative.

S starts at 0, which is not a regular point. So letters act on C − S, where C is a multiple of the identity: with
v_a = Cᵀk_a, S is C − gC after the group element g.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.export.plan import DECIMALS, UNIT, Orbit, StageHead, orbit

_MAX_KEYS = 8  # the most different reflections
_MAX_SETS = 3_000  # the most partial choices of supports that are tried


def reflections(delta: np.ndarray, start: int) -> Orbit | None:
    """Return a head for letters that are the identity, involutions, or resets to the start; None for others.

    `delta` is the table, int64 (|Σ|, n), of a machine whose states are all reachable. The result is also None if the
    product of two involutions has an order above 3, or if no keys are found.

    >>> swaps = np.array([[1, 0, 2], [0, 2, 1]])           # (0 1) and (1 2): two reflections of S3
    >>> len(reflections(swaps, 0).states)
    6
    """
    n = delta.shape[1]
    identity = np.arange(n)
    kinds = list[int | None]()  # the number of a reflection, None for the identity, −1 for a reset
    maps = list[np.ndarray]()
    for row in delta:
        if np.array_equal(row, identity):
            kinds.append(None)
        elif n > 1 and (row == start).all():
            kinds.append(-1)
        elif np.array_equal(row[row], identity):
            index = next((i for i, other in enumerate(maps) if np.array_equal(row, other)), None)
            kinds.append(len(maps) if index is None else index)
            maps += [row] if index is None else []
        else:
            return None
    if not 1 <= len(maps) <= _MAX_KEYS:
        return None
    products = np.zeros((len(maps), len(maps)))
    for i, j in combinations(range(len(maps)), 2):
        turn = maps[i][maps[j]]
        if np.array_equal(turn[turn[turn]], identity):
            products[i, j] = products[j, i] = 0.5
        elif not np.array_equal(turn[turn], identity):
            return None
    best: Orbit | None = None
    for keys in roots(products):
        orbit = _best_query(kinds, keys)
        if orbit is not None and (best is None or len(orbit.states) < len(best.states)):
            best = orbit
        if best is not None and len(best.states) <= 2 * n:
            break
    return best


def roots(products: np.ndarray) -> Iterator[np.ndarray]:
    """Yield keys, unit vectors with entries 0, ½ and 1, shape (m, d), whose products are the matrix `products` (m, m).

    Choices that differ only in the order of coordinates are yielded once; the search ends after `_MAX_SETS` choices.
    """
    tried = 0

    def extend(chosen: list[frozenset[int]], used: int) -> Iterator[list[frozenset[int]]]:
        nonlocal tried
        tried += 1
        if tried > _MAX_SETS:
            return
        if len(chosen) == len(products):
            yield chosen
            return
        row = products[len(chosen)]
        for size in (1, 4):
            for old in range(min(size, used), -1, -1):
                for inside in combinations(range(used), old):
                    support = frozenset(inside) | frozenset(range(used, used + size - old))
                    if all(_product(support, other) == row[i] for i, other in enumerate(chosen)):
                        yield from extend([*chosen, support], used + size - old)

    for supports in extend([], 0):
        keys = np.zeros((len(supports), max(max(support) for support in supports) + 1))
        for key, support in zip(keys, supports, strict=True):
            key[list(support)] = 1.0 if len(support) == 1 else 0.5
        yield keys


def _product(support: frozenset[int], other: frozenset[int]) -> float:
    entries = (1.0 if len(support) == 1 else 0.5) * (1.0 if len(other) == 1 else 0.5)
    return entries * len(support & other)


def _best_query(kinds: list[int | None], keys: np.ndarray) -> Orbit | None:
    """Return the head with these keys that is read in the direction that separates its marks best, or None.

    The candidates are directions at equal distance from all mirrors, on each side; for S_n their images are the corners
    of a permutohedron. If keys are not simple roots, some candidates lie on other mirrors, so directions at distances
    1, 2, 3 … are tried too. The result is None if no direction separates the marks.
    """
    d = keys.shape[1]
    rows = np.array([keys[kind] if kind is not None and kind >= 0 else np.zeros(d) for kind in kinds])
    alphas = np.array([0.0 if kind == -1 else 1.0 for kind in kinds])
    betas = np.array([2.0 if kind is not None and kind >= 0 else 0.0 for kind in kinds])
    inverse, best = np.linalg.pinv(keys), None
    sides = [np.array([1.0, *signs]) for signs in product((1.0, -1.0), repeat=len(keys) - 1)]
    for distances in [*sides, *(side * np.arange(1, len(keys) + 1) for side in sides)]:
        query = np.round(inverse @ distances, DECIMALS) + 0.0  # no −0
        if np.abs(keys @ query).min() < 1e-6:
            continue
        head = StageHead(rows, UNIT * rows, alphas, betas, query, query / np.linalg.norm(query))
        if best is None:
            try:
                best = orbit(head)
            except BudgetExceeded:
                return None
            continue
        candidate = Orbit(head, best.states, best.table, np.stack([head.mark(S) for S in best.states]))
        best = candidate if candidate.gap > best.gap + 1e-12 else best
    return best if best is not None and best.gap > 1e-6 else None
