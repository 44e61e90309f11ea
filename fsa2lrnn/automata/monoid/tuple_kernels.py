"""Kernels on pairs, triples and quadruples of states, for `factors`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def reachable(successors: np.ndarray) -> np.ndarray:
    """Return whether some path, possibly empty, leads from each node to each: bool, shape (N, N). O(N² k)."""
    size, k = successors.shape
    reached, queue = np.zeros((size, size), np.bool_), np.empty(size, np.int64)
    for start in range(size):
        row = reached[start]
        row[start], queue[0] = True, start
        end, i = 1, 0
        while i < end:
            for a in range(k):
                j = successors[queue[i], a]
                if not row[j]:
                    row[j] = True
                    queue[end] = j
                    end += 1
            i += 1
    return reached


@njit(cache=True)
def quadruples(letters: np.ndarray, loops: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the quadruples of distinct states every three of which a word fixes, and the graph of the letters on them.

    `loops` says of three states whether a word fixes them. The first array has the number of each quadruple or −1,
    int32, shape (n, n, n, n), the second the graph, −1 for what leaves it; a row of −2 if more than `limit` exist.
    """
    k, n = letters.shape
    numbers, count = np.full((n, n, n, n), -1, np.int32), 0
    for p in range(n):
        for q in range(n):
            for r in range(n):
                if p in (q, r) or q == r or not loops[p, q, r]:
                    continue
                for s in range(n):
                    if s not in (p, q, r) and loops[p, q, s] and loops[p, r, s] and loops[q, r, s]:
                        numbers[p, q, r, s] = count
                        count += 1
    if count > limit:
        return numbers, np.full((1, 1), -2, np.int32)
    graph = np.empty((count, k), np.int32)
    for p in range(n):
        for q in range(n):
            for r in range(n):
                for s in range(n):
                    i = numbers[p, q, r, s]
                    if i >= 0:
                        for a in range(k):
                            graph[i, a] = numbers[letters[a, p], letters[a, q], letters[a, r], letters[a, s]]
    return numbers, graph


@njit(cache=True)
def not_exchangeable(
    reach: np.ndarray, loops3: np.ndarray, numbers: np.ndarray, loops4: np.ndarray, n: int, limit: int
) -> tuple[int, int, int, int, int, int, int]:
    """Find pattern 4 of `factors`: (a, b, c, d, b′, c′, d′); −1 seven times for none, −2 beyond `limit` comparisons.

    `reach[p n + q, r n + s]`: some word leads (p, q) to (r, s); `loops3` and, by `numbers`, `loops4` say whether some
    word fixes three states or four.
    """
    first, second = np.empty((n * n, 2), np.int64), np.empty((n * n, 2), np.int64)
    steps = 0
    for a in range(n):
        for c in range(n):
            if not reach[a * n + a, c * n + c]:
                continue
            for c1 in range(c, n):  # the pattern is symmetric
                if not loops3[a, c, c1] or not reach[a * n + a, c1 * n + c1]:
                    continue
                n_first = n_second = 0
                for b in range(n):
                    for d in range(n):
                        if loops3[b, b, d]:
                            if reach[a * n + c1, b * n + d] and reach[b * n + b, c * n + c]:
                                first[n_first] = b, d
                                n_first += 1
                            if reach[a * n + c, b * n + d] and reach[b * n + b, c1 * n + c1]:
                                second[n_second] = b, d
                                n_second += 1
                steps += n_first * n_second + n * n
                if steps > limit:
                    return -2, -2, -2, -2, -2, -2, -2
                for i in range(n_first):
                    b, d1 = first[i]
                    for j in range(n_second):
                        b1, d = second[j]
                        if d == d1 or not reach[b * n + b1, c * n + c1]:
                            continue
                        if b == b1:
                            fixed = loops3[b, d, d1]
                        elif d in (b, b1):
                            fixed = loops3[b, b1, d1]
                        elif d1 in (b, b1):
                            fixed = loops3[b, b1, d]
                        else:
                            number = numbers[b, d, b1, d1]
                            fixed = number >= 0 and loops4[number]
                        if fixed:
                            return a, b, c, d, b1, c1, d1
    return -1, -1, -1, -1, -1, -1, -1
