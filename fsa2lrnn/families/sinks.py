"""Machines with a sink whose letters are otherwise one to one, and the keys of their Householder factors (T7)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def sink_of(delta: np.ndarray) -> int | None:
    """Return a state s that no letter leaves, with every letter one to one on the states that it does not map to s."""
    for s in range(delta.shape[1]):
        if all(row[s] == s and len(np.unique(row[row != s])) == np.count_nonzero(row != s) for row in delta):
            return s
    return None


def paths(row: np.ndarray, sink: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return the chains of states that a letter leads to a sink, and its cycles of two or more states.

    >>> paths(np.array([1, 3, 2, 3, 5, 4]), 3)
    ([[0, 1]], [[4, 5]])
    """
    sources = set(row.tolist())
    chains, visited = list[list[int]](), {sink}
    for q in range(len(row)):
        if q not in sources and q != sink:
            chain = [q]
            while row[chain[-1]] != sink:
                chain.append(int(row[chain[-1]]))
            chains.append(chain)
            visited.update(chain)
    cycles: list[list[int]] = []
    for q in range(len(row)):
        if q not in visited:
            cycle = [q]
            while row[cycle[-1]] != q:
                cycle.append(int(row[cycle[-1]]))
            visited.update(cycle)
            if len(cycle) > 1:
                cycles.append(cycle)
    return chains, cycles


def keys(row: np.ndarray, sink: int) -> list[tuple[int, ...]]:
    """Return the keys of a letter's factors I − k kᵀ, in order, with the sink at 0 and other states at unit vectors."""
    n, factors = len(row), list[tuple[int, ...]]()
    chains, cycles = paths(row, sink)
    for chain in chains:
        factors.append(tuple(int(q == chain[-1]) for q in range(n)))
    for cycle in (*chains, *cycles):
        factors += [tuple((q == cycle[0]) - (q == other) for q in range(n)) for _, other in pairwise(cycle)]
    return factors
