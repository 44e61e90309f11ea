# pyright: standard
"""Kernels on maps of states by words and on graphs, which do not check their arguments.

A map of n states is a row of n unsigned integers. A graph is `successors`, int (N, k): letter a leads node i to
`successors[i, a]`, −1 for no edge.
"""

from __future__ import annotations

import numpy as np
from numba import njit

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
        # The bytes of a row are its dictionary key.
        keys = images.view(f"V{n * images.itemsize}").ravel().tolist()
        # A new key gets the next number, so numbers follow the order of first occurrence, also beyond the cap.
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
            # `letter` marks the visited nodes; the start is not marked, so that a path may return to it.
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
