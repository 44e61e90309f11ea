# pyright: standard
"""Compiled kernels on maps and graphs: numpy arrays in and out, without checks (as `automata.table_kernels`).

A map of n states is a row of n unsigned integers; a graph is `successors[i, a]`, shape (N, k), with −1 for no edge.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def generate(
    letters: np.ndarray, start: np.ndarray, sets: bool, cap: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
    """Generate the orbit of a map or set under letters, breadth first: (elements, origin, letter, right, whole).

    `letters` is unsigned, shape (k, n); `start` has the same dtype, shape (n,), and is a map or, if `sets`, a set as
    its indicator, 1 for a member. Element 0 is `start`, `elements[i]` is `elements[origin[i]]` followed by `letter[i]`,
    and no shorter word gives it. `right[i, a]` is the number of element i followed by a, −1 where the search stopped
    before. It stops, with `whole` False, at the first element beyond `cap`.
    """
    k, n = letters.shape
    capacity = 256
    elements = np.empty((capacity, n), letters.dtype)
    origin, letter = np.full(capacity, -1), np.full(capacity, -1)
    right, hashes = np.full((capacity, k), -1), np.zeros(capacity, np.uint64)
    # Open addressing, at most half full; a slot holds the number of an element or −1.
    table = np.full(2 * capacity, -1)
    elements[0], hashes[0] = start, _hash(start)
    table[np.int64(hashes[0] & np.uint64(2 * capacity - 1))] = 0
    image = np.empty(n, letters.dtype)
    count, i = 1, 0
    while i < count:
        for a in range(k):
            if sets:
                image[:] = 0
                for q in range(n):
                    if elements[i, q]:
                        image[letters[a, q]] = 1
            else:
                for q in range(n):
                    image[q] = letters[a, elements[i, q]]
            code = _hash(image)
            slot = np.int64(code & np.uint64(table.shape[0] - 1))
            while table[slot] >= 0:
                j = table[slot]
                if hashes[j] == code and _same(elements[j], image):
                    break
                slot = (slot + 1) & (table.shape[0] - 1)
            if table[slot] < 0:
                if count == cap:
                    return elements[:count], origin[:count], letter[:count], right[:count], False
                if count == capacity:
                    elements, right = np.concatenate((elements, elements)), np.concatenate((right, right))
                    origin, letter = np.concatenate((origin, origin)), np.concatenate((letter, letter))
                    hashes = np.concatenate((hashes, hashes))
                    right[capacity:] = -1
                    capacity *= 2
                    table = np.full(2 * capacity, -1)
                    for j in range(count):
                        slot = np.int64(hashes[j] & np.uint64(2 * capacity - 1))
                        while table[slot] >= 0:
                            slot = (slot + 1) & (2 * capacity - 1)
                        table[slot] = j
                    slot = np.int64(code & np.uint64(2 * capacity - 1))
                    while table[slot] >= 0:
                        slot = (slot + 1) & (2 * capacity - 1)
                elements[count], hashes[count], table[slot] = image, code, count
                origin[count], letter[count] = i, a
                count += 1
            right[i, a] = table[slot]
        i += 1
    return elements[:count], origin[:count], letter[:count], right[:count], True


@njit(cache=True)
def _hash(row: np.ndarray) -> np.uint64:
    code = np.uint64(14695981039346656037)
    for x in row:
        code = (code ^ np.uint64(x)) * np.uint64(1099511628211)
    return code ^ (code >> np.uint64(29))


@njit(cache=True)
def _same(row: np.ndarray, other: np.ndarray) -> bool:
    same = row.shape[0] == other.shape[0]
    for q in range(row.shape[0]):
        same = same and row[q] == other[q]
    return same


@njit(cache=True)
def left_cayley(origin: np.ndarray, letter: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return left[i, a], the number of a followed by element i, from the result of `generate` for a whole monoid.

    a·(u·b) = (a·u)·b, and u stands before u·b (Froidure & Pin 1997): no map is composed.
    """
    left = np.empty_like(right)
    left[0] = right[0]
    for i in range(1, right.shape[0]):
        for a in range(right.shape[1]):
            left[i, a] = right[left[origin[i], a], letter[i]]
    return left


@njit(cache=True)
def components(successors: np.ndarray) -> np.ndarray:
    """Return the strongly connected component of each node, numbered so that edges never lead to a higher number.

    Tarjan (1972) with an explicit stack: O(N k), at any depth.
    """
    size, k = successors.shape
    component, low, visited = np.full(size, -1), np.empty(size, np.int64), np.full(size, -1)
    open_nodes, path = np.empty(size, np.int64), np.empty(size, np.int64)
    tried = np.zeros(size, np.int64)
    time, n_open, n_components = 0, 0, 0
    for root in range(size):
        if visited[root] >= 0:
            continue
        path[0], depth = root, 1
        while depth:
            i = path[depth - 1]
            if tried[i] == 0:
                visited[i] = low[i] = time
                time += 1
                open_nodes[n_open] = i
                n_open += 1
            deeper = False
            while tried[i] < k:
                j = successors[i, tried[i]]
                tried[i] += 1
                if j < 0 or component[j] >= 0:
                    continue
                if visited[j] < 0:
                    path[depth] = j
                    depth += 1
                    deeper = True
                    break
                low[i] = min(low[i], visited[j])
            if deeper:
                continue
            if low[i] == visited[i]:
                j = -1
                while j != i:
                    n_open -= 1
                    j = open_nodes[n_open]
                    component[j] = n_components
                n_components += 1
            depth -= 1
            if depth:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[i])
    return component


def on_cycle(successors: np.ndarray) -> np.ndarray:
    """Return whether each node lies on a cycle, loops included: bool, shape (N,)."""
    component = components(successors)
    loops = (successors == np.arange(len(successors))[:, None]).any(axis=1)
    return (np.bincount(component)[component] > 1) | loops


@njit(cache=True)
def path(successors: np.ndarray, start: int, goal: int) -> np.ndarray:
    """Return the letters of a shortest path of at least one edge from start to goal, or [−1] if none exists."""
    size, k = successors.shape
    origin, letter = np.full(size, -1), np.full(size, -1)
    queue = np.empty(size + 1, np.int64)
    queue[0] = start
    end, i = 1, 0
    while i < end:
        for a in range(k):
            j = successors[queue[i], a]
            if j >= 0 and letter[j] < 0:
                letter[j], origin[j] = a, queue[i]
                queue[end] = j
                end += 1
                if j == goal:
                    length, node = 1, queue[i]
                    while node != start:
                        length, node = length + 1, origin[node]
                    word, node = np.empty(length, np.int64), goal
                    for at in range(length - 1, -1, -1):
                        word[at], node = letter[node], origin[node]
                    return word
        i += 1
    return np.full(1, -1)


@njit(cache=True)
def first_turning(elements: np.ndarray) -> int:
    """Return the number of the first map with a cycle of two states or more, or −1."""
    n = elements.shape[1]
    walk_of = np.empty(n, np.int64)
    for i in range(elements.shape[0]):
        walk_of[:] = -1
        for start in range(n):
            q = start
            while walk_of[q] < 0:
                walk_of[q] = start
                q = np.int64(elements[i, q])
            if walk_of[q] == start and elements[i, q] != q:
                return i
    return -1


@njit(cache=True)
def periodic_states(elements: np.ndarray) -> np.ndarray:
    """Return whether each state lies on a cycle of each map, fixed states included: bool, shape (N, n)."""
    size, n = elements.shape
    periodic = np.ones((size, n), np.bool_)
    incoming, stack = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(size):
        incoming[:] = 0
        for q in range(n):
            incoming[elements[i, q]] += 1
        height = 0
        for q in range(n):
            if incoming[q] == 0:
                stack[height] = q
                height += 1
        while height:
            height -= 1
            periodic[i, stack[height]] = False
            r = elements[i, stack[height]]
            incoming[r] -= 1
            if incoming[r] == 0:
                stack[height] = r
                height += 1
    return periodic


@njit(cache=True)
def transport(
    letters: np.ndarray, sets: np.ndarray, right: np.ndarray, component: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the bijections between the sets of each component: (places, size, root, turns).

    `sets` and `right` come from `generate`, `component` from `components`. In a component all sets have one size m.
    Its first set is the root; a shortest path inside leads the root's x-th member, x < m, to `places[i, x]` in set i.
    `turns[i, a]`: the letter leads set i to a set of its component, but its members differently from `places`.
    """
    (count, n), k = sets.shape, letters.shape[0]
    places, size, root = np.zeros((count, n), letters.dtype), np.zeros(count, np.int64), np.full(count, -1)
    queue = np.empty(count, np.int64)
    for first in range(count):
        if root[first] >= 0:
            continue
        m = 0
        for q in range(n):
            if sets[first, q]:
                places[first, m] = q
                m += 1
        queue[0], root[first], size[first] = first, first, m
        end, at = 1, 0
        while at < end:
            i = queue[at]
            for a in range(k):
                j = right[i, a]
                if j >= 0 and component[j] == component[i] and root[j] < 0:
                    root[j], size[j] = first, m
                    for x in range(m):
                        places[j, x] = letters[a, places[i, x]]
                    queue[end] = j
                    end += 1
            at += 1
    turns = np.zeros((count, k), np.bool_)
    for i in range(count):
        for a in range(k):
            j = right[i, a]
            if j >= 0 and component[j] == component[i]:
                for x in range(size[i]):
                    if letters[a, places[i, x]] != places[j, x]:
                        turns[i, a] = True
    return places, size, root, turns


@njit(cache=True)
def tuple_graph(letters: np.ndarray, size: int) -> np.ndarray:
    """Return the graph of all letters on ordered pairs (size 2) or triples (3): int32, shape (n^size, k).

    The tuple (p, q, r) has the number (p n + q) n + r. There are no edges from or to tuples that repeat a state.
    """
    k, n = letters.shape
    graph = np.full((n**size, k), -1, np.int32)
    for code in range(n**size):
        p, q, r = code // n**2, code // n % n, code % n
        for a in range(k):
            x, y, z = letters[a, p] if size == 3 else n, letters[a, q], letters[a, r]
            repeats = size == 3 and p in (q, r)
            if not (repeats or q == r or y == z or x in (y, z)):
                graph[code, a] = ((x if size == 3 else 0) * n + y) * n + z
    return graph


@njit(cache=True)
def not_semilattice(pairs: np.ndarray, loops: np.ndarray, n: int) -> tuple[int, int, int, int]:
    """Find a pattern against local testability among triples that a word fixes: (kind, p, q, r), kind 0 for none.

    `pairs` is the graph of pairs, `loops[(p n + q) n + r]` whether some word fixes p, q and r. Kind 1: a word maps
    (p, q) to (q, r). Kind 2: one maps (p, r) to (q, r), another (p, q) to (r, q). O(n⁴ k).
    """
    moves_past = np.zeros((n, n, n), np.bool_)  # [p, q, r]: some word takes (p, q) to (r, q)
    visited, queue = np.empty(n * n, np.int64), np.empty(n * n, np.int64)
    visited[:] = -1
    for start in range(n * n):
        p, q = start // n, start % n
        if not loops[start * n : start * n + n].any():
            continue
        queue[0], visited[start] = start, start
        end, i = 1, 0
        while i < end:
            for a in range(pairs.shape[1]):
                j = pairs[queue[i], a]
                if j >= 0 and visited[j] != start:
                    visited[j] = start
                    queue[end] = j
                    end += 1
            i += 1
        for r in range(n):
            if loops[start * n + r]:
                if visited[q * n + r] == start:
                    return 1, p, q, r
                moves_past[p, q, r] = visited[r * n + q] == start
    for p in range(n):
        for q in range(n):
            for r in range(n):
                if moves_past[p, r, q] and moves_past[p, q, r]:
                    return 2, p, q, r
    return 0, 0, 0, 0
