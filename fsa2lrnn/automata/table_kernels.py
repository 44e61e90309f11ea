# pyright: standard
"""Compiled kernels on integer transition tables: reachability, minimisation and equivalence.

A table `next_state`, int64 (|Σ|, n), has entries in 0 … n−1. The kernels do not check this, their callers do. numba
compiles each kernel at its first use and stores the machine code on disk next to this file.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fsa2lrnn.walks import walk_words


@njit(cache=True)
def breadth_first(next_state: np.ndarray, start: int) -> np.ndarray:
    """Return the states reachable from `start`, breadth first, letters in order: int64, shape (reachable,).

    The table may have negative entries, which mark missing transitions.
    """
    n_letters, n = next_state.shape
    order = np.empty(n, np.int64)
    reached = np.zeros(n, np.bool_)
    order[0], reached[start] = start, True
    count, k = 1, 0
    while k < count:
        for a in range(n_letters):
            q = next_state[a, order[k]]
            if q >= 0 and not reached[q]:
                reached[q] = True
                order[count] = q
                count += 1
        k += 1
    return order[:count]


@njit(cache=True)
def grouped(groups: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the members of each group as (first, order): those of g are order[first[g] : first[g + 1]], increasing.

    `groups` is int (n,), the group 0 … n_groups−1 of each member. The results are int64, (n_groups + 1,) and (n,).
    """
    first = np.zeros(n_groups + 1, np.int64)
    for s in range(groups.shape[0]):
        # Counting sort: sizes, shifted by one, become the first places by cumulative sums.
        first[groups[s] + 1] += 1
    first = np.cumsum(first)
    fill, order = first[:-1].copy(), np.empty(groups.shape[0], np.int64)
    for s in range(groups.shape[0]):
        order[fill[groups[s]]] = s
        fill[groups[s]] += 1
    return first, order


@njit(cache=True)
def can_reach(next_state: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return for each state whether some word, possibly empty, leads from it to a target: bool (n,).

    `next_state` is int (|Σ|, n), `targets` bool (n,). The search goes breadth first against the transitions: O(|Σ| n),
    also for a long chain of states.
    """
    n = next_state.shape[1]
    first, edges = grouped(np.ascontiguousarray(next_state).reshape(-1), n)  # edge a n + q leaves q
    reached = targets.copy()
    waiting = np.empty(n, np.int64)
    n_waiting = 0
    for q in range(n):
        if reached[q]:
            waiting[n_waiting] = q
            n_waiting += 1
    k = 0
    while k < n_waiting:
        for i in range(first[waiting[k]], first[waiting[k] + 1]):
            p = edges[i] % n
            if not reached[p]:
                reached[p] = True
                waiting[n_waiting] = p
                n_waiting += 1
        k += 1
    return reached


@njit(cache=True)
def hopcroft(next_state: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the coarsest partition finer than `classes` that every letter respects, as block numbers, int64 (n,).

    This is the algorithm of Hopcroft (1971) with the refinable partition of Valmari & Lehtinen (2008): O(|Σ| n log n).
    `classes` is int64, shape (n,), with each of the values 0 … n_classes−1.
    """
    n_letters, n = next_state.shape
    # The edges under a into q: edges[first_edge[a n + q] : first_edge[a n + q + 1]]; edge a n + p leaves p.
    targets = next_state + np.arange(n_letters).reshape(-1, 1) * n
    first_edge, edges = grouped(targets.reshape(-1), n_letters * n)
    # Block c holds states[first[c] : end[c]]; its first marked[c] members are marked; place[q] is where q stands.
    block_of = classes.copy()
    starts, states = grouped(classes, n_classes)
    first, end = np.zeros(n, np.int64), np.zeros(n, np.int64)
    largest = 0
    for c in range(n_classes):
        first[c], end[c] = starts[c], starts[c + 1]
        if end[c] - first[c] > end[largest] - first[largest]:
            largest = c
    place, marked = np.empty(n, np.int64), np.zeros(n, np.int64)
    for i in range(n):
        place[states[i]] = i
    # Splitters (block, letter) still to be tried; all but the largest block suffice at first.
    # There are at most n blocks, and each enters once per letter, so the stack cannot overflow.
    waiting = np.empty(n * n_letters, np.int64)
    n_waiting = 0
    for c in range(n_classes):
        if c != largest:
            for a in range(n_letters):
                waiting[n_waiting] = c * n_letters + a
                n_waiting += 1
    touched, members = np.empty(n, np.int64), np.empty(n, np.int64)
    n_blocks = n_classes
    while n_waiting:
        n_waiting -= 1
        splitter, a = waiting[n_waiting] // n_letters, waiting[n_waiting] % n_letters
        size = end[splitter] - first[splitter]
        for i in range(size):  # numba takes longer to compile an assignment of slices than all the rest
            # A copy, because marking moves states within their blocks, those of the splitter too.
            members[i] = states[first[splitter] + i]
        n_touched = 0
        for i in range(size):
            for j in range(first_edge[a * n + members[i]], first_edge[a * n + members[i] + 1]):
                q = edges[j] % n
                c = block_of[q]
                if marked[c] == 0:
                    touched[n_touched] = c
                    n_touched += 1
                # q changes places with the first unmarked state of its block.
                target = first[c] + marked[c]
                other = states[target]
                states[place[q]], place[other] = other, place[q]
                states[target], place[q] = q, target
                marked[c] += 1
        for i in range(n_touched):
            c = touched[i]
            cut, n_marked = first[c] + marked[c], marked[c]
            marked[c] = 0
            # All members are marked: the letter does not split the block.
            if cut == end[c]:
                continue
            # The smaller half becomes the new block; the old number keeps the larger, and its place in `waiting`.
            if n_marked <= end[c] - cut:
                first[n_blocks], end[n_blocks] = first[c], cut
                first[c] = cut
            else:
                first[n_blocks], end[n_blocks] = cut, end[c]
                end[c] = cut
            for j in range(first[n_blocks], end[n_blocks]):
                block_of[states[j]] = n_blocks
            for b in range(n_letters):
                waiting[n_waiting] = n_blocks * n_letters + b
                n_waiting += 1
            n_blocks += 1
    return block_of


@njit(cache=True)
def distinguish(next_state: np.ndarray, classes: np.ndarray, start_a: int, start_b: int) -> tuple[bool, np.ndarray]:
    """Return whether some word leads two states to different classes, int64 (n,), and a shortest such word, int64 (T,).

    A breadth-first search over pairs of states skips a pair whose members union-find has already merged (Hopcroft &
    Karp 1971). This loses no shortest word: if w separates p from q, and p and q were merged through pairs visited
    earlier, hence no deeper, then w separates the members of one of those pairs. At most n − 1 pairs are stored.
    """
    n_letters, n = next_state.shape
    parent = np.arange(n)
    left, right = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    origin, letter = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    left[0], right[0], origin[0], letter[0] = start_a, start_b, -1, -1
    parent[start_b] = start_a
    found, k, hit = 1, 0, -1
    if classes[start_a] != classes[start_b]:
        hit = 0
    while k < found and hit < 0:
        for a in range(n_letters):
            p, q = next_state[a, left[k]], next_state[a, right[k]]
            # Union-find with path halving: the roots of p and q.
            i, j = p, q
            while parent[i] != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            while parent[j] != j:
                parent[j] = parent[parent[j]]
                j = parent[j]
            if i != j:
                parent[j] = i
                left[found], right[found], origin[found], letter[found] = p, q, k, a
                if classes[p] != classes[q]:
                    hit = found
                    break
                found += 1
        k += 1
    # Follow the origins back from the pair that differs, first for the length of the word, then for its letters.
    if hit < 0:
        return False, np.empty(0, np.int64)
    length, k = 0, hit
    while origin[k] >= 0:
        length, k = length + 1, origin[k]
    word, k = np.empty(length, np.int64), hit
    while origin[k] >= 0:
        length -= 1
        word[length] = letter[k]
        k = origin[k]
    return True, word


def paths(delta: np.ndarray, q: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Return the states after each letter of N words (N, T), from the states q (N,): int64 (N, T).

    >>> paths(np.array([[0, 1], [1, 0]]), np.array([0, 1]), np.array([[1, 0, 1], [1, 0, 0]])).tolist()
    [[1, 1, 0], [0, 0, 0]]
    """
    states = np.empty(tokens.shape, np.int64)
    delta, q, tokens = (np.ascontiguousarray(table, np.int64) for table in (delta, q, tokens))
    walk_words(delta, q, tokens, states)
    return states


def coaccessible(delta: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the coaccessible states, from which some word, possibly empty, leads to a target: bool (n,) -> (n,).

    >>> coaccessible(np.array([[1, 2, 2]]), np.array([False, True, False])).tolist()
    [True, True, False]
    """
    return can_reach(np.ascontiguousarray(delta, np.int64), np.ascontiguousarray(targets, np.bool_))


def settled(delta: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return for each state whether every word leads it to a state of its own class: int64 (n,) -> bool (n,).

    >>> settled(np.array([[1, 2, 2]]), np.array([0, 1, 1])).tolist()
    [False, True, True]
    """
    return ~coaccessible(delta, (classes[delta] != classes).any(0))
