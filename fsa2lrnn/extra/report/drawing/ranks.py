"""A layered layout after Sugiyama, Tagawa and Toda (1981): ranks, an order within each rank, and positions.

Nodes are numbers, ranks are columns from left to right. An edge that passes a column occupies a position in it, a
waypoint. The order is that with the fewest crossings among sweeps of medians. Positions are those nearest to the
neighbours that keep all nodes apart, which is an isotonic regression (pool adjacent violators).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 14
_SETTLE = 10  # sweeps of places

Edge = tuple[int, int]


@dataclass(frozen=True)
class RankedLayout:
    """A layout of nodes in columns.

    Args:
        columns: node numbers from top to bottom, column by column; waypoints are numbered after the nodes.
        height: the vertical position of each node in its column.
        routes: the waypoints of each edge, from its first node to its second.
    """

    columns: list[list[int]]
    height: list[float]
    routes: dict[Edge, list[int]]


def distances(n: int, edges: Iterable[Edge], start: int) -> list[int]:
    """Return the number of steps from the start to each of n nodes, 0 for unreachable nodes.

    >>> distances(4, [(0, 1), (1, 2), (2, 0)], 0)
    [0, 1, 2, 0]
    """
    after: list[list[int]] = [[] for _ in range(n)]
    for q, then in edges:
        after[q].append(then)
    found, waiting = {start: 0}, deque([start])
    while waiting:
        q = waiting.popleft()
        for then in after[q]:
            if then not in found:
                found[then] = found[q] + 1
                waiting.append(then)
    return [found.get(q, 0) for q in range(n)]


def columns_of(steps: Sequence[int], edges: Iterable[Edge], tallest: int) -> list[int]:
    """Return the column of each node, by its steps from the start.

    Nodes with the same number of steps are split into several columns of at most `tallest`, those with the most edges
    to farther nodes last.
    """
    onward = [0] * len(steps)
    for q, then in edges:
        onward[q] += (steps[then] > steps[q]) - (steps[then] < steps[q])
    column, at = [0] * len(steps), 0
    for step in range(max(steps) + 1):
        here = sorted((q for q, s in enumerate(steps) if s == step), key=lambda q: (onward[q], q))
        parts = max(1, -(-len(here) // tallest))
        size = -(-len(here) // parts)
        for i, q in enumerate(here):
            column[q] = at + i // max(size, 1)
        at += -(-len(here) // size) if here else 0
    return column


def rank(column: Sequence[int], edges: Iterable[Edge], room: float, passing: float | None) -> RankedLayout:
    """Return the order and the positions of nodes in their columns.

    Args:
        column: the column of each node.
        edges: pairs of nodes; those within a column have no influence.
        room: the distance between the centres of two nodes of a column.
        passing: the distance for a waypoint; None for edges without waypoints.
    """
    edges = [edge for edge in dict.fromkeys(edges) if column[edge[0]] != column[edge[1]]]
    where, routes, links = list(column), {}, []
    for q, then in edges:
        route: list[int] = []
        towards = 1 if column[then] > column[q] else -1
        if passing is not None:
            for c in range(column[q] + towards, column[then], towards):
                route.append(len(where))
                where.append(c)
        routes[q, then] = route
        chain = [q, *route, then]
        links += pairwise(chain)
    near: list[list[int]] = [[] for _ in where]
    for a, b in links:
        near[a].append(b)
        near[b].append(a)
    columns: list[list[int]] = [[] for _ in range(max(where) + 1)]
    for node, c in enumerate(where):
        columns[c].append(node)
    columns = _ordered(columns, near, where)
    halves = [room / 2] * len(column) + [(passing or 0) / 2] * (len(where) - len(column))
    return RankedLayout(columns, _placed(columns, near, halves), routes)


def _ordered(columns: list[list[int]], near: list[list[int]], where: list[int]) -> list[list[int]]:
    best, fewest = [list(c) for c in columns], _crossings(columns, near, where)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        forth = sweep % 2 == 0
        order = range(1, len(columns)) if forth else range(len(columns) - 2, -1, -1)
        for c in order:
            share = {node: (i + 0.5) / len(column) for column in columns for i, node in enumerate(column)}
            keys = {}
            for i, node in enumerate(columns[c]):
                seen = sorted(share[m] for m in near[node] if (where[m] < c) == forth and where[m] != c)
                keys[node] = (_median(seen) if seen else share[node], i if sweep % 4 < 2 else -i)
            columns[c].sort(key=keys.__getitem__)
        found = _crossings(columns, near, where)
        if found < fewest:
            best, fewest = [list(c) for c in columns], found
    return best


def _median(values: list[float]) -> float:
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def _crossings(columns: list[list[int]], near: list[list[int]], where: list[int]) -> int:
    position = {node: i for column in columns for i, node in enumerate(column)}
    total = 0
    for c, column in enumerate(columns):
        further: dict[int, list[int]] = {}
        for node in column:
            for m in sorted((m for m in near[node] if where[m] > c), key=position.__getitem__):
                further.setdefault(where[m], []).append(position[m])
        for ends in further.values():
            seen: list[int] = []
            for end in ends:
                total += len(seen) - bisect_left(seen, end + 1)
                insort(seen, end)
    return total


def _placed(columns: list[list[int]], near: list[list[int]], halves: list[float]) -> list[float]:
    height = [0.0] * len(near)
    for column in columns:
        at = -sum(halves[node] for node in column)
        for node in column:
            height[node] = at + halves[node]
            at += 2 * halves[node]
    for sweep in range(_SETTLE):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wanted = [_mean([height[m] for m in near[node]], height[node]) for node in column]
            for node, y in zip(column, spread(wanted, [halves[node] for node in column]), strict=True):
                height[node] = y
    return height


def _mean(values: list[float], otherwise: float) -> float:
    return math.fsum(values) / len(values) if values else otherwise


def spread(wanted: Sequence[float], halves: Sequence[float]) -> list[float]:
    """Return the positions nearest to the wanted ones (least squares) that keep order and distance.

    Adjacent positions are at least the sum of their two `halves` apart.

    >>> spread([0, 0, 10], [1, 1, 1])
    [-1.0, 1.0, 10.0]
    """
    offsets, at = [], 0.0
    for i, half in enumerate(halves):
        at += half + (halves[i - 1] if i else -half)
        offsets.append(at)
    pools: list[list[float]] = []  # mean, size
    for y, offset in zip(wanted, offsets, strict=True):
        pools.append([y - offset, 1.0])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, size = pools.pop()
            before, count = pools[-1]
            pools[-1] = [(before * count + mean * size) / (count + size), count + size]
    flat = [mean for mean, size in pools for _ in range(int(size))]
    return [mean + offset for mean, offset in zip(flat, offsets, strict=True)]
