# pyright: standard
"""Kernels on maps of states by words, on graphs, and on tuples of states, which do not check their arguments.

A map of n states is a row of n unsigned integers. A graph is `successors`, int (N, k): letter a leads node i to
`successors[i, a]`, −1 for no edge.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numba import njit

from fsa2lrnn.automata.table_kernels import breadth_first
from fsa2lrnn.deadline import check_current, is_over

_CHUNK = 1 << 22  # entries of maps that are computed at a time


def generate(
    letters: np.ndarray, start: np.ndarray, sets: bool, cap: int, partial: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
    """Return the orbit of a map or set under letters, breadth first, as (elements, origin, letter, right, whole).

    `letters` is unsigned, shape (k, n); `start` has the same dtype, shape (n,), and is a map or, if `sets`, the 0/1
    indicator of a set. Element 0 is `start`; `elements[i]` is `elements[origin[i]]` followed by `letter[i]`, and no
    shorter word gives it. `right[i, a]` is the number of element i followed by a, −1 if this is not among the elements
    or was not computed. `whole` is False if there are more than `cap` elements, of which the first `cap` are returned,
    or if the current deadline passed, after fewer, and `partial`; else this raises `OutOfTime`.
    """
    k, n = letters.shape
    step = max(1, _CHUNK // max(1, k * n))
    number = {start.tobytes(): 0}
    blocks, right, origin, letter = [start[None]], list[np.ndarray](), [np.array([-1])], [np.array([-1])]
    done, late = 0, False
    for block in blocks:  # which grows
        if late := partial and is_over():
            break
        check_current("enumerating maps of states")
        if sets:
            images = np.zeros((len(block), k, n), letters.dtype)
            rows, members = np.nonzero(block)
            images[rows[:, None], np.arange(k), letters[:, members].T] = 1
        else:
            images = letters[:, block].swapaxes(0, 1)
        images, n_before = np.ascontiguousarray(images).reshape(-1, n), len(number)
        keys = images.view(f"V{n * images.itemsize}").ravel().tolist()
        codes = np.array([number.setdefault(key, len(number)) for key in keys], np.int64)
        right.append(np.where(codes < cap, codes, -1).reshape(len(block), k))
        # New elements are numbered in the order of their first places.
        fresh = np.flatnonzero((codes >= n_before) & (codes < cap))
        new = fresh[np.unique(codes[fresh], return_index=True)[1]]
        origin.append(done + new // k)
        letter.append(new % k)
        blocks += [images[new[i : i + step]] for i in range(0, len(new), step)]
        done += len(block)
        if len(number) > cap:
            break
    elements = np.concatenate(blocks)
    right.append(np.full((len(elements) - done, k), -1))
    return (
        elements,
        np.concatenate(origin),
        np.concatenate(letter),
        np.concatenate(right),
        len(number) <= cap and not late,
    )


def components(successors: np.ndarray) -> np.ndarray:
    """Return the strongly connected component of each node, numbered so that edges never lead to a higher number.

    This is Tarjan's algorithm (1972) with an explicit stack: O(N k), at any depth.
    """
    size = len(successors)
    component, visited, tried = np.full(size, -1), np.full(size, -1, np.int32), np.zeros(size, np.int32)
    low, open_nodes, path = (np.empty(size, np.int32) for _ in range(3))
    at = np.zeros(5, np.int64)
    while not _more_components(successors, component, low, visited, open_nodes, path, tried, at, _SLICE):
        check_current("searching strongly connected components")
    return component


_SLICE = 1 << 20  # nodes that `_more_components` visits at a time


@njit(cache=True)
def _more_components(
    successors: np.ndarray, component: np.ndarray, low: np.ndarray, visited: np.ndarray,
    open_nodes: np.ndarray, path: np.ndarray, tried: np.ndarray, at: np.ndarray, budget: int,
) -> bool:  # fmt: skip
    """Go on with the search that stopped `at` (root, depth, time, n_open, n_components); return whether it is done."""
    size, k = successors.shape
    root, depth, time, n_open, n_components = at
    while root < size:
        if depth == 0:
            if visited[root] >= 0:
                root += 1
                continue
            path[0], depth = root, 1
        while depth:
            budget -= 1
            if budget < 0:
                at[:] = root, depth, time, n_open, n_components
                return False
            i = path[depth - 1]
            if tried[i] == 0:
                visited[i] = low[i] = time
                time += 1
                open_nodes[n_open] = i
                n_open += 1
            # Follow untried edges until one leads to a new node.
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
            # No edge leads above i: the open nodes from i on are one component.
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
    return True


def on_cycle(successors: np.ndarray) -> np.ndarray:
    """Return whether each node lies on a cycle, which may be a loop: bool, shape (N,)."""
    component = components(successors)
    loops = (successors == np.arange(len(successors))[:, None]).any(axis=1)
    return (np.bincount(component)[component] > 1) | loops


@njit(cache=True)
def path(successors: np.ndarray, start: int, goal: int) -> np.ndarray:
    """Return the letters of a shortest path of at least one edge from `start` to `goal`, int64 (T,), else [−1]."""
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


def periodic_states(maps: np.ndarray) -> np.ndarray:
    """Return whether each state lies on a cycle, or is fixed, under each map: bool, shape (N, n).

    These are the states in the image of the map's 2^i-th power, for 2^i ≥ n.
    """
    size, n = maps.shape
    periodic = np.zeros((size, n), np.bool_)
    for i in range(0, size, step := max(1, _CHUNK // n)):
        power = maps[i : i + step].astype(np.int64)
        for _ in range(n.bit_length()):
            power = np.take_along_axis(power, power, axis=1)
        np.put_along_axis(periodic[i : i + step], power, True, axis=1)
    return periodic


def first_turning(maps: np.ndarray) -> int:
    """Return the number of the first map with a cycle of two states or more, or −1."""
    turning = np.flatnonzero((periodic_states(maps) & (maps != np.arange(maps.shape[1]))).any(axis=1))
    return int(turning[0]) if len(turning) else -1


def tuple_graph(letters: np.ndarray, size: int, distinct: bool = True) -> np.ndarray:
    """Return the graph of all letters on ordered pairs (size 2) or triples (3): int32, shape (n^size, k).

    The tuple (p, q, r) has the number (p n + q) n + r. If `distinct`, there are no edges from or to tuples that repeat
    a state.
    """
    k, n = letters.shape
    targets = rows = letters.astype(np.int32)
    for _ in range(size - 1):
        targets = (targets[:, :, None] * n + rows[:, None, :]).reshape(k, -1)
    graph = np.ascontiguousarray(targets.T)
    if distinct:
        states = np.indices((n,) * size).reshape(size, -1)
        repeats = np.any([p == q for p, q in combinations(states, 2)], axis=0)
        graph[np.logical_or(repeats[:, None], repeats[graph])] = -1
    return graph


def reachable(successors: np.ndarray, start: int) -> np.ndarray:
    """Return whether some path, possibly empty, leads from `start` to each node: bool, shape (N,)."""
    reached = np.zeros(len(successors), np.bool_)
    reached[breadth_first(successors.T, start)] = True
    return reached


def not_semilattice(pairs: np.ndarray, loops: np.ndarray, n: int) -> tuple[int, int, int, int]:
    """Return a pattern (kind, p, q, r) of `factors` among triples that a word fixes; kind 0 means none.

    `pairs` is the graph of pairs, (n², k); `loops[(p n + q) n + r]` is whether some word fixes p, q and r. Kind 1: a
    word maps (p, q) to (q, r). Kind 2: one word maps (p, r) to (q, r), another (p, q) to (r, q). The time is O(n⁴ k).
    """
    loops = loops.reshape(n * n, n)
    moves_past = np.zeros((n, n, n), np.bool_)  # [p, q, r]: some word takes (p, q) to (r, q)
    for start in np.flatnonzero(loops.any(axis=1)).tolist():
        p, q = divmod(start, n)
        reached = reachable(pairs, start).reshape(n, n)
        if (onward := loops[start] & reached[q]).any():
            return 1, p, q, int(onward.argmax())
        moves_past[p, q] = loops[start] & reached[:, q]
    for p, q, r in np.argwhere(moves_past & moves_past.swapaxes(1, 2)).tolist():
        return 2, p, q, r
    return 0, 0, 0, 0


def quadruples(letters: np.ndarray, loops: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the quadruples of distinct states every three of which a word fixes, and the graph of the letters on them.

    `loops`, bool (n, n, n), is whether a word fixes three states. The first result is the number of each quadruple, or
    −1, int32 (n, n, n, n). The second is the graph, −1 for edges that leave it, or [[−2]] beyond `limit` quadruples.
    """
    n = letters.shape[1]
    apart = ~np.eye(n, dtype=bool)
    loops = loops & apart[:, :, None] & apart[:, None, :] & apart
    fixed = loops[:, :, :, None] & loops[:, :, None, :] & loops[:, None, :, :] & loops
    numbers = np.full(fixed.shape, -1, np.int32)
    if np.count_nonzero(fixed) > limit:
        return numbers, np.full((1, 1), -2, np.int32)
    states = np.argwhere(fixed).T
    numbers[fixed] = np.arange(states.shape[1])
    p, q, r, s = letters[:, states].swapaxes(0, 1)
    return numbers, np.ascontiguousarray(numbers[p, q, r, s].T)


@njit(cache=True)
def not_exchangeable(
    reach: np.ndarray, loops3: np.ndarray, numbers: np.ndarray, loops4: np.ndarray, n: int, a: int, c: int
) -> tuple[int, int, int, int, int, int, int]:
    """Return pattern 4 of `factors` at (a, c), (a, b, c, d, b′, c′, d′), or (−1, the comparisons, −1, …) if none.

    `reach[p n + q, r n + s]` is whether some word leads (p, q) to (r, s); `loops3[p, q, r]` whether some word fixes
    three states, and `loops4[numbers[p, q, r, s]]` whether one fixes four.
    """
    first, second = np.empty((n * n, 2), np.int64), np.empty((n * n, 2), np.int64)
    steps = 0
    if reach[a * n + a, c * n + c]:
        for c1 in range(c, n):  # the pattern is symmetric in c and c′
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
    return -1, steps, -1, -1, -1, -1, -1
