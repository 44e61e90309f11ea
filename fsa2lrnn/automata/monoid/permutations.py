"""Solvability of permutation groups given by generators. Permutations are rows of uint32, composed left to right."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np

from fsa2lrnn.automata.monoid import map_kernels

SMALLEST_UNSOLVABLE = 60  # the order of A₅
COMMUTATORS_KEPT = 12  # at each depth of nesting


def elements(generators: np.ndarray, cap: int) -> np.ndarray | None:
    """Return all elements of the group that permutations generate, shape (m, n), identity first; None beyond `cap`.

    >>> elements(np.array([[1, 2, 0]], np.uint32), cap=10).tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    """
    identity = np.arange(generators.shape[1], dtype=np.uint32)
    listed, _, _, _, whole = map_kernels.generate(generators, identity, False, cap)
    return listed if whole else None


def generating_set(permutations: np.ndarray, cap: int) -> list[int]:
    """Return numbers of permutations that generate the same group as all, each at least doubling the group.

    Once they generate more than `cap` elements no more are taken.

    >>> generating_set(np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]], np.uint32), cap=10)
    [1]
    """
    chosen: list[int] = []
    covered: set[bytes] | None = _as_set(permutations[:0], cap)
    for i, permutation in enumerate(permutations):
        if covered is not None and permutation.tobytes() not in covered:
            chosen.append(i)
            covered = _as_set(permutations[chosen], cap)
    return chosen


def is_solvable_group(generators: np.ndarray, cap: int) -> bool | None:
    """Decide whether permutations (m, n) generate a solvable group; None if it is beyond `cap` and not refuted.

    By the derived series, element by element; beyond `cap` by `nested_commutators_survive`.

    >>> is_solvable_group(np.array([[1, 0, 2, 3], [1, 2, 3, 0]], np.uint32), cap=100)
    True
    >>> is_solvable_group(np.array([[1, 0, 2, 3, 4], [1, 2, 3, 4, 0]], np.uint32), cap=1_000)
    False
    """
    group = elements(generators, cap)
    if group is None:
        return False if nested_commutators_survive(generators) else None
    order = len(group)
    while order >= SMALLEST_UNSOLVABLE:
        generators, smaller = _derived(generators, order)
        if smaller == order:
            return False
        order = smaller
    return True


def nested_commutators_survive(generators: np.ndarray) -> bool:
    """Decide whether some commutator, nested deeper than a solvable group allows, is not the identity.

    A solvable group of permutations of n points has a derived series of at most log₂ n! steps, each halving the order
    at least. True therefore proves that the group is not solvable; False proves nothing.

    >>> nested_commutators_survive(np.array([[1, 0, *range(2, 20)], [*range(1, 20), 0]], np.uint32))
    True
    """
    n = generators.shape[1]
    layer = list(generators)
    for _ in range(math.ceil(math.lgamma(n + 1) / math.log(2)) + 1):
        deeper = _distinct([_commutator(f, g) for f, g in combinations(layer, 2)])
        # Every group of the derived series is normal in the whole group, so conjugates may fill the layer up.
        conjugates = [_conjugate(f, g) for f, g in product(deeper[:COMMUTATORS_KEPT], generators)]
        layer = _distinct(deeper + conjugates)[:COMMUTATORS_KEPT]
        if not layer:
            return False
    return True


def _derived(generators: np.ndarray, order: int) -> tuple[np.ndarray, int]:
    found: list[np.ndarray] = []
    covered: set[bytes] = _as_set(generators[:0], order) or set()
    waiting = [_commutator(f, g) for f, g in combinations(generators, 2)]
    while waiting:
        f = waiting.pop()
        if f.tobytes() not in covered:
            found.append(f)
            covered = _as_set(np.array(found), order) or set()
            waiting += [_conjugate(f, g) for g in generators]
    return np.array(found, generators.dtype).reshape(-1, generators.shape[1]), len(covered)


def _as_set(generators: np.ndarray, cap: int) -> set[bytes] | None:
    group = elements(generators, cap)
    return None if group is None else {g.tobytes() for g in group}


def _distinct(permutations: list[np.ndarray]) -> list[np.ndarray]:
    return [f for f in {f.tobytes(): f for f in permutations}.values() if (f != np.arange(len(f))).any()]


def _commutator(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return g[f[np.argsort(g)[np.argsort(f)]]]


def _conjugate(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return g[f[np.argsort(g)]]
