# pyright: standard
"""Compiled kernels on partitions, which do not check their arguments.

A partition of n states is int64, shape (n,), with its blocks numbered 0, 1, … by first appearance. `maps` is int64,
shape (k, n), with entries in 0 … n−1. A congruence is a partition each block of which every map leads into a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from fsa2lrnn.automata.table_kernels import grouped

FREE, CONSTANT, INJECTIVE, OTHER = 0, 1, 2, 3  # kinds of local maps


@njit(cache=True)
def _find(parent: np.ndarray, q: Any) -> Any:
    while parent[q] != q:
        parent[q] = parent[parent[q]]
        q = parent[q]
    return q


@njit(cache=True)
def close(maps: np.ndarray, start: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the finest congruence that is coarser than the congruence `start` and merges the pairs, int64 (m, 2).

    Union-find: after two blocks are merged, the images of one state of each are merged too.
    """
    k, n = maps.shape
    parent, head, stack = np.empty(n, np.int64), np.full(n, -1), np.empty((n, 2), np.int64)
    # `head[b]` is the first state of block b of `start`, the root of the block; merged pairs wait on the stack.
    blocks, top = 0, 0
    for s in range(n):
        if head[start[s]] < 0:
            head[start[s]] = s
            blocks += 1
        parent[s] = head[start[s]]
    for i in range(pairs.shape[0]):
        p, q = _find(parent, pairs[i, 0]), _find(parent, pairs[i, 1])
        if p != q:
            parent[max(p, q)] = min(p, q)
            stack[top] = pairs[i]
            top, blocks = top + 1, blocks - 1
    # Each merge lowers the number of blocks, so that at most n − 1 pairs are ever on the stack.
    while top and blocks > 1:
        top -= 1
        left, right = stack[top]
        for a in range(k):
            p, q = _find(parent, maps[a, left]), _find(parent, maps[a, right])
            if p != q:
                parent[max(p, q)] = min(p, q)
                stack[top, 0], stack[top, 1] = maps[a, left], maps[a, right]
                top, blocks = top + 1, blocks - 1
    return _by_first_appearance(parent, np.arange(n))


@njit(cache=True)
def join(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the join of two partitions: the finest that is coarser than both. That of congruences is a congruence."""
    n = p.shape[0]
    parent, head = np.arange(n), np.full(n, -1)
    for s in range(n):
        if head[q[s]] < 0:
            head[q[s]] = p[s]
        else:
            x, y = _find(parent, head[q[s]]), _find(parent, p[s])
            parent[max(x, y)] = min(x, y)
    return _by_first_appearance(parent, p)


@njit(cache=True)
def _by_first_appearance(parent: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    labels, number, blocks = np.empty_like(nodes), np.full(parent.shape[0], -1), 0
    for s in range(nodes.shape[0]):
        root = _find(parent, nodes[s])
        if number[root] < 0:
            number[root] = blocks
            blocks += 1
        labels[s] = number[root]
    return labels


@njit(cache=True)
def meets(context: np.ndarray, partitions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the meets of a partition `context` with each of the partitions (N, n), as (rows, blocks, index).

    These are the meets, int64 (N, n), their numbers of blocks, (N,), and the largest number of blocks of each inside a
    block of the context, (N,).
    """
    N, n = partitions.shape
    n_blocks = context.max() + 1
    first, order = grouped(context, n_blocks)
    rows, blocks, index = np.empty((N, n), np.int64), np.zeros(N, np.int64), np.zeros(N, np.int64)
    label_of, number, raw = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(N):
        label_of[:] = -1
        for b in range(n_blocks):
            before = blocks[i]
            for j in range(first[b], first[b + 1]):
                c = partitions[i, order[j]]
                # `label_of[c]` remembers the last context block in which block c occurred, so that it need not be
                # cleared.
                if label_of[c] != b:
                    label_of[c], number[c] = b, blocks[i]
                    blocks[i] += 1
                raw[order[j]] = number[c]
            index[i] = max(index[i], blocks[i] - before)
        label_of[:] = -1
        count = 0
        for s in range(n):
            if label_of[raw[s]] < 0:
                label_of[raw[s]] = count
                count += 1
            rows[i, s] = label_of[raw[s]]
    return rows, blocks, index


@njit(cache=True)
def pair_graph(maps: np.ndarray) -> np.ndarray:
    """Return the number of the image of each pair p < q: int32 (n(n−1)/2, k), −1 if a map merges the pair.

    Pairs are numbered in the order of `np.triu_indices`.
    """
    k, n = maps.shape
    graph = np.full((n * (n - 1) // 2, k), -1, np.int32)
    i = 0
    for p in range(n):
        for q in range(p + 1, n):
            for a in range(k):
                x, y = maps[a, p], maps[a, q]
                if x != y:
                    low, high = min(x, y), max(x, y)
                    # Row `low` of the upper triangle begins after low·(2n − low − 1)/2 pairs.
                    graph[i, a] = low * (2 * n - low - 1) // 2 + high - low - 1
            i += 1
    return graph


@njit(cache=True)
def _slot(row: np.ndarray, rows: np.ndarray, hashes: np.ndarray, table: np.ndarray) -> tuple[Any, Any]:
    """Return the hash of a row, and its slot in an open-addressing table of row numbers (−1 in empty slots)."""
    # The hash is FNV-1a; rows with equal hashes are compared entry by entry, so it need not be collision-free.
    code = np.uint64(14695981039346656037)
    for x in row:
        code = (code ^ np.uint64(x)) * np.uint64(1099511628211)
    code ^= code >> np.uint64(29)
    slot = np.int64(code & np.uint64(table.shape[0] - 1))
    while table[slot] >= 0:
        if hashes[table[slot]] == code and np.array_equal(rows[table[slot]], row):
            break
        slot = (slot + 1) & (table.shape[0] - 1)
    return code, slot


@njit(cache=True)
def _open_table(capacity: int) -> np.ndarray:
    size = 2
    # A power of two, at most half full, keeps the chains of probes short.
    while size < 2 * capacity:
        size *= 2
    return np.full(size, -1)


@njit(cache=True)
def principals(
    maps: np.ndarray, pairs: np.ndarray, graph: np.ndarray, component: np.ndarray, size: int, budget: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the congruences that single pairs generate, (P, n), a pair for each, (P, 2), and whether they are all.

    `graph` has the images of each pair (`pair_graph`), `component` numbers its strong components, sinks first. Pairs of
    one component generate the same congruence, which is coarser than those of their images: the closure starts from the
    coarsest of these. The search stops early, and returns False, at `size` congruences or `budget` steps.
    """
    k, n = maps.shape
    representative = np.full(component.max() + 1, -1)
    for i in range(pairs.shape[0]):
        if representative[component[i]] < 0:
            representative[component[i]] = i
    size = min(size, representative.shape[0])
    rows, source, hashes = np.empty((size, n), np.int64), np.empty((size, 2), np.int64), np.empty(size, np.uint64)
    generated, table, identity = np.full(representative.shape[0], -1), _open_table(size), np.arange(n)
    count, steps = 0, 0
    # Components in their order, so that the congruences of all images of a pair are known before its own.
    for c in range(representative.shape[0]):
        i, coarsest = representative[c], -1
        for j in graph[i]:
            if j >= 0 and generated[component[j]] >= 0:
                row_number = generated[component[j]]
                if coarsest < 0 or rows[row_number].max() < rows[coarsest].max():
                    coarsest = row_number
        start = rows[coarsest] if coarsest >= 0 else identity
        # The pair is merged already: it generates what its image does.
        if start[pairs[i, 0]] == start[pairs[i, 1]]:
            generated[c] = coarsest
            continue
        if steps > budget:
            return rows[:count], source[:count], False
        row = close(maps, start, pairs[i : i + 1])
        # `close` takes n steps and, for each of its merges, k images.
        steps += n + k * (start.max() - row.max())
        code, slot = _slot(row, rows, hashes, table)
        if table[slot] < 0:
            if count == size:
                return rows[:count], source[:count], False
            rows[count], source[count], hashes[count], table[slot] = row, pairs[i], code, count
            count += 1
        generated[c] = table[slot]
    return rows[:count], source[:count], True


@njit(cache=True)
def joins(generators: np.ndarray, pairs: np.ndarray, size: int, budget: int) -> tuple[np.ndarray, bool]:
    """Return all joins of principal congruences (P, n) with generating pairs (P, 2), and whether these are all.

    The row with the fewest blocks is joined with all generators next. So a search that stops early, before more than
    `size` rows or after `budget` steps, returns coarse ones.
    """
    P, n = generators.shape
    rows, hashes, blocks = np.empty((size, n), np.int64), np.empty(size, np.uint64), np.empty(size, np.int64)
    waiting, table = np.zeros(size, np.bool_), _open_table(size)
    count, steps = 0, 0
    current = np.arange(n)
    while True:
        for j in range(P):
            # A congruence that merges the pair contains the principal congruence of that pair: the join would change
            # nothing.
            if current[pairs[j, 0]] == current[pairs[j, 1]]:
                continue
            if steps > budget:
                return rows[:count], False
            steps += n
            row = join(current, generators[j])
            code, slot = _slot(row, rows, hashes, table)
            if table[slot] < 0:
                if count == size:
                    return rows[:count], False
                rows[count], hashes[count], blocks[count], table[slot] = row, code, row.max(), count
                waiting[count] = True
                count += 1
        # Go on with the coarsest row that has not been joined with the generators yet.
        coarsest = -1
        for i in range(count):
            if waiting[i] and (coarsest < 0 or blocks[i] < blocks[coarsest]):
                coarsest = i
        if coarsest < 0:
            return rows[:count], True
        waiting[coarsest] = False
        current = rows[coarsest]


@njit(cache=True)
def separators(generators: np.ndarray, pairs: np.ndarray, chosen: np.ndarray, budget: int) -> np.ndarray:
    """Return a maximal join of generators that separates the states of each chosen pair: int64 (S, n).

    S is the number of pairs treated before `budget` steps. Generators are principal congruences (P, n) of pairs (P, 2).
    """
    n = generators.shape[1]
    rows = np.empty((chosen.shape[0], n), np.int64)
    steps = 0
    for i in range(chosen.shape[0]):
        if steps > budget:
            return rows[:i]
        x, y = pairs[chosen[i]]
        row = np.arange(n)
        for j in range(generators.shape[0]):
            steps += 1
            # A generator that itself merges x and y can be part of no join that separates them.
            if row[pairs[j, 0]] != row[pairs[j, 1]] and generators[j, x] != generators[j, y]:
                steps += n
                wider = join(row, generators[j])
                if wider[x] != wider[y]:
                    row = wider
        rows[i] = row
    return rows


@njit(cache=True)
def local_maps(
    maps: np.ndarray, context: np.ndarray, finer: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the action of maps on the m blocks of a finer congruence inside a context: (block, first, images, kind).

    `block[first[b] : first[b + 1]]` are the blocks of `finer` inside block b of the context. `images[a, c]` is the
    image of block c of `finer` under map a, int64 (k, m). `kind[a, b]` is the kind of map a on the blocks inside b,
    `FREE` if b or its image contains only one.
    """
    k, m, n_blocks = maps.shape[0], finer.max() + 1, context.max() + 1
    state, outer = np.full(m, -1), np.empty(m, np.int64)
    for s in range(finer.shape[0]):
        if state[finer[s]] < 0:
            state[finer[s]], outer[finer[s]] = s, context[s]
    first, block = grouped(outer, n_blocks)
    images, kind = np.empty((k, m), np.int64), np.zeros((k, n_blocks), np.int64)
    marked = np.empty(m, np.int64)
    for a in range(k):
        for c in range(m):
            images[a, c] = finer[maps[a, state[c]]]
        marked[:] = -1
        for b in range(n_blocks):
            size = first[b + 1] - first[b]
            target = outer[images[a, block[first[b]]]]
            if size == 1 or first[target + 1] - first[target] == 1:
                continue
            distinct = 0
            for i in range(first[b], first[b + 1]):
                if marked[images[a, block[i]]] != b:
                    marked[images[a, block[i]]] = b
                    distinct += 1
            kind[a, b] = CONSTANT if distinct == 1 else INJECTIVE if distinct == size else OTHER
    return block, first, images, kind


@njit(cache=True)
def identified(
    classes: np.ndarray, block: np.ndarray, first: np.ndarray, images: np.ndarray, kind: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Merge the classes, a partition (m,) of blocks, of every block and its images under injective local maps.

    Returns the merged classes, and whether the blocks inside each block of the context remain separate. The other
    arguments are results of `local_maps`; `images` and `kind` may have any number of rows.
    """
    m = classes.shape[0]
    parent = np.arange(m)
    for a in range(images.shape[0]):
        for b in range(kind.shape[1]):
            if kind[a, b] == INJECTIVE:
                for i in range(first[b], first[b + 1]):
                    x, y = _find(parent, classes[block[i]]), _find(parent, classes[images[a, block[i]]])
                    parent[max(x, y)] = min(x, y)
    merged = _by_first_appearance(parent, classes)
    last_block = np.full(m, -1)
    for b in range(kind.shape[1]):
        for i in range(first[b], first[b + 1]):
            # Two blocks inside one context block have got the same class.
            if last_block[merged[block[i]]] == b:
                return merged, False
            last_block[merged[block[i]]] = b
    return merged, True


@njit(cache=True)
def is_identity_reset(maps: np.ndarray, context: np.ndarray, finer: np.ndarray) -> bool:
    """Return whether labels of the blocks exist under which every local map is constant or the identity."""
    block, first, images, kind = local_maps(maps, context, finer)
    for row in kind:
        for entry in row:
            if entry == OTHER:
                return False
    return identified(np.arange(block.shape[0]), block, first, images, kind)[1]
