"""Congruences of a machine (Hartmanis & Stearns 1966): partitions of the states that every letter respects.

The blocks of a congruence are the states of a smaller machine. Two congruences that meet in the identity give two
machines that together determine the state of the whole (docs/theory.md §6). A partition is int64, shape (n,), with its
blocks numbered by first appearance. `maps` is int64, shape (k, n): letter a leads state q to `maps[a, q]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.monoid.map_kernels import components
from fsa2lrnn.cascade import partition_kernels
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

_MAX_EDGES = 2**25  # of the graph of all pairs of states; 1,024 states with 64 letters have as many
_SAMPLE = 2**15  # pairs that are tried where all are too many
_MAX_ENTRIES = 2**25  # of the stored principal congruences
_MAX_STEPS = 2**27  # of each search, about a second


def canonical(labels: np.ndarray | Sequence[int]) -> np.ndarray:
    """Return the partition into states with equal labels: any integers (n,) -> int64 (n,).

    >>> canonical([7, 2, 7, 0]).tolist()
    [0, 1, 0, 2]
    """
    _, first, number = np.unique(np.asarray(labels), return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def meet(p: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Return the meet of partitions, whose blocks are the non-empty intersections of their blocks.

    >>> meet(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])).tolist()
    [0, 1, 2, 2]
    """
    for q in others:
        p = partition_kernels.meets(p, q[None])[0][0]
    return p


def closure(maps: np.ndarray, pairs: np.ndarray | Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the finest congruence in which the two states of every pair, (m, 2), share a block.

    >>> closure(np.array([[1, 2, 3, 4, 5, 0]]), [(1, 3)]).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    identity = np.arange(maps.shape[1], dtype=np.int64)
    return partition_kernels.close(maps, identity, np.asarray(pairs, np.int64).reshape(-1, 2))


@dataclass(frozen=True, eq=False)
class Lattice:
    """Congruences of a machine, coarse ones first.

    Args:
        partitions: distinct partitions, int64 (N, n): the one with a single block first, the identity last.
        complete: whether these are all congruences of the machine, so that they are closed under join.
        method: the method of the enumeration, or the limit that was reached.

    Raises `InvalidMachine` if a row is not a partition, or the first or the last row is another one.
    """

    partitions: np.ndarray
    complete: bool
    method: str

    def __post_init__(self) -> None:
        rows = self.partitions
        n = rows.shape[1]
        # A new block may only take the next free number: each entry is at most one above the largest entry before it.
        reached = np.maximum.accumulate(rows, axis=1)
        if rows.min() < 0 or rows[:, 0].any() or (rows[:, 1:] > reached[:, :-1] + 1).any():
            raise InvalidMachine(
                "a lattice holds partitions whose blocks are numbered by first appearance: canonical()"
            )
        if rows[0].any() or not np.array_equal(rows[-1], np.arange(n, dtype=np.int64)):
            raise InvalidMachine(
                f"a lattice goes from the all-in-one to the identity, but its first row has {rows[0].max() + 1} blocks "
                f"and its last {rows[-1].max() + 1} of {n}: add them"
            )
        rows.flags.writeable = False


def lattice(maps: np.ndarray, limit: int = 3_000) -> Lattice:
    """Return the congruences of a machine: those that single merged pairs of states generate, and all their joins.

    If there are more than `limit`, or too many to enumerate, return a selection: congruences that merge the states
    merged by all words of some length; for pairs of states, a maximal congruence that separates the two (in most cases
    these meet in the identity); and then the coarsest.

    Args:
        maps: distinct maps of the states, int64 (k, n).
        limit: the largest number of congruences, at least 2.

    Raises `BudgetExceeded` if `limit` is less than 2, since the two trivial congruences always exist.

    >>> congruences = lattice(np.array([[1, 2, 3, 0]]))
    >>> congruences.partitions.tolist(), congruences.method
    ([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 2, 3]], 'all 3 congruences, joins of 2 principal ones')
    """
    if limit < 2:
        raise BudgetExceeded(
            f"limit = {limit}, but the all-in-one and the identity are two congruences: give 2 or more"
        )
    n = maps.shape[1]
    identity = np.arange(n, dtype=np.int64)
    ends = np.stack([np.zeros(n, np.int64), identity])[: min(n, 2)]
    if n <= 2:
        return Lattice(ends, True, f"all {len(ends)} congruences, of {n} states")
    # 1. The principal congruences, and their joins, coarse ones first.
    pairs, graph, component = _pairs(maps)
    room = max(2, _MAX_ENTRIES // n)
    principal, source, all_tried = partition_kernels.principals(maps, pairs, graph, component, room, _MAX_STEPS)
    order = np.argsort(principal.max(axis=1), kind="stable")
    principal, source = principal[order], source[order]
    limit = min(limit, room)
    joined, all_joined = partition_kernels.joins(principal, source, limit - 1, _MAX_STEPS)
    n_pairs = n * (n - 1) // 2
    # Every congruence is the join of the principal congruences of the pairs that it merges.
    if all_joined and all_tried and len(pairs) == n_pairs:
        rows = np.concatenate([joined, ends[1:]])
        method = f"all {len(rows):,} congruences, joins of {len(principal):,} principal ones"
        return Lattice(rows[_coarse_first(rows)], True, method)
    # 2. Too many: a sample that separates pairs of states, what words of one length merge, and the coarsest.
    chosen = np.unique(np.linspace(0, len(principal) - 1, min(limit, len(principal))).astype(np.int64))
    apart = partition_kernels.separators(principal, source, chosen, _MAX_STEPS)
    rest = np.concatenate([joined, principal])
    rest = rest[np.argsort(rest.max(axis=1), kind="stable")]
    rows = _distinct(np.concatenate([ends, _merging(maps), apart, rest]), limit)
    drawn = "all" if all_tried and len(pairs) == n_pairs else "some"
    method = (
        f"{len(rows):,} congruences of more, from {drawn} of the {n_pairs:,} pairs of states: "
        f"capped at {limit:,} congruences and {_MAX_STEPS:,} steps of a search"
    )
    return Lattice(rows[_coarse_first(rows)], False, method)


def _pairs(maps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of states (m, 2) to merge, their images (m, k), and the component of each pair in that graph.

    If the graph of all pairs is too large, return only pairs with state 0 and their images under short words, and a
    graph without edges.
    """
    k, n = maps.shape
    if k * n * (n - 1) // 2 <= _MAX_EDGES:
        graph = partition_kernels.pair_graph(maps)
        return np.stack(np.triu_indices(n, 1), axis=1), graph, components(graph)
    # A pair (p, q) has the code p·n + q, so the codes below n are the pairs with state 0.
    codes = fresh = np.arange(1, min(n, _SAMPLE + 1), dtype=np.int64)
    while len(fresh) and len(codes) < _SAMPLE:
        images = np.sort(np.stack([maps[:, fresh // n], maps[:, fresh % n]]), axis=0)
        fresh = np.setdiff1d((images[0] * n + images[1])[images[0] != images[1]], codes)
        codes = np.concatenate([codes, fresh])
    codes = codes[:_SAMPLE]
    alone = np.arange(len(codes), dtype=np.int64)
    return np.stack([codes // n, codes % n], axis=1), np.empty((len(codes), 0), np.int32), alone


def _merging(maps: np.ndarray) -> np.ndarray:
    rows = [np.arange(maps.shape[1], dtype=np.int64)]
    # Row k merges the states that all words of k letters merge; once a row is equal to the one before, all later ones
    # are.
    while len(rows) == 1 or rows[-1].max() < rows[-2].max():
        _, number = np.unique(rows[-1][maps], axis=1, return_inverse=True)
        rows.append(canonical(number.ravel()))
    return np.stack(rows[1:])


def block_sizes(rows: np.ndarray) -> np.ndarray:
    """Return the sizes of the blocks of partitions, in the order of their numbers: int64 (N, n) -> (N, n).

    >>> block_sizes(np.array([[0, 1, 0]])).tolist()
    [[2, 1, 0]]
    """
    N, n = rows.shape
    offset = np.arange(0, N * n, n, dtype=np.int64)
    return np.bincount((rows + offset[:, None]).ravel(), minlength=N * n).reshape(N, n)


def _coarse_first(rows: np.ndarray) -> np.ndarray:
    # Big-endian keys compare as bytes in the order of their numbers: number of blocks, sizes, then the labels.
    sizes = -np.sort(-block_sizes(rows), axis=1)
    keys = np.concatenate([rows.max(axis=1)[:, None], sizes, rows], axis=1).astype(">u4")
    return np.array(sorted(range(len(rows)), key=lambda i: keys[i].tobytes()), np.int64)


def _distinct(rows: np.ndarray, count: int) -> np.ndarray:
    place: dict[bytes, int] = {}
    for i, row in enumerate(rows):
        if len(place) == count:
            break
        place.setdefault(row.tobytes(), i)
    return rows[list(place.values())]
