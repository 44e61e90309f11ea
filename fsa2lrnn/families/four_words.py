"""Search for four words that refute a family, as in the paper's Propositions 1 and 2 (T4 of docs/theory.md).

If A_u = A_u' then x_{pu} − x_{pu'} = x_u − x_u' for every prefix p. So no layer of the family represents a machine in
which u and u' lead to one state from the start and to two after p, or the reverse. Such words are a readable proof, but
need not exist if T3 refutes the family.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.families.identities import Family

MAX_NODES = 300_000  # nodes, each of four states, of the search over words of equal length
MAX_ENTRIES = 400_000  # words × states of the search over rearrangements, which has at most 20,000 words


@dataclass(frozen=True)
class FourWords:
    """The words p, u, u' of a certificate as letter numbers.

    `differ_at_start`: whether u and u' lead to two states, and pu and pu' to one, or the reverse.
    """

    prefix: tuple[int, ...]
    u: tuple[int, ...]
    other: tuple[int, ...]
    differ_at_start: bool


def shortest_four_words(family: Family, delta: np.ndarray, start: int) -> FourWords | None:
    """Return a four-word certificate with minimal |u|, then |p|, for a table (|Σ|, n), or None if none was found.

    Only input-independent and commuting families are searched, within the limits of this module.
    """
    _, first_of_kind = np.unique(delta, axis=0, return_index=True)
    letters = sorted(int(a) for a in first_of_kind)
    reached = _shortest_words(delta, start)
    if family.letters == "input-independent":
        return _of_equal_length(delta, start, letters, reached)
    return _rearranged(delta, start, letters, reached) if family.letters == "commuting" else None


def _of_equal_length(
    delta: np.ndarray, start: int, letters: list[int], reached: dict[int, tuple[int, ...]]
) -> FourWords | None:
    """Return words of equal length that agree from the start but not after a prefix, or the reverse; else None.

    Breadth-first search over (δ_u(q₀), δ_u'(q₀), δ_u(s), δ_u'(s)), q₀ the start and s the state after the prefix.
    """
    table = delta.tolist()
    origin: dict[tuple[int, int, int, int], tuple[tuple[int, int, int, int] | None, int, int]] = {}
    queue: deque[tuple[int, int, int, int]] = deque()
    for s in sorted(reached, key=lambda s: len(reached[s])):
        node = (start, start, s, s)
        origin[node] = (None, -1, -1)
        queue.append(node)
    while queue:
        node = queue.popleft()
        for a in letters:
            for b in letters:
                child = (table[a][node[0]], table[b][node[1]], table[a][node[2]], table[b][node[3]])
                if child in origin:
                    continue
                origin[child] = (node, a, b)
                # T4: u and u' agree from exactly one of the two states.
                if (child[0] == child[1]) != (child[2] == child[3]):
                    return _traced(child, origin, reached)
                if len(origin) > MAX_NODES:
                    return None
                queue.append(child)
    return None


def _traced(
    node: tuple[int, int, int, int],
    origin: dict[tuple[int, int, int, int], tuple[tuple[int, int, int, int] | None, int, int]],
    reached: dict[int, tuple[int, ...]],
) -> FourWords:
    """Return the words that lead to a node, read back through `origin`: (earlier node, letter of u, letter of u')."""
    differ_at_start, pairs = node[0] != node[1], list[tuple[int, int]]()
    while (step := origin[node])[0] is not None:
        pairs.append(step[1:])
        node = step[0]
    u, other = zip(*reversed(pairs), strict=True)
    return FourWords(reached[node[2]], u, other, differ_at_start)


def _rearranged(
    delta: np.ndarray, start: int, letters: list[int], reached: dict[int, tuple[int, ...]]
) -> FourWords | None:
    """Return words of the same letters, reordered, that agree from the start but not elsewhere, or the reverse.

    All words of one length are listed with their images of the n states, then those of the next, within `MAX_ENTRIES`.
    """
    n = delta.shape[1]
    words, images = np.zeros((1, 0), np.int64), np.arange(n)[None]  # (words, length), (words, n)
    while len(letters) > 1 and len(words) * len(letters) * max(n, 20) <= MAX_ENTRIES:
        images = np.concatenate([delta[a][images] for a in letters])
        words = np.concatenate([np.append(words, np.full((len(words), 1), a), axis=1) for a in letters])
        # Words with the same sorted letters are rearrangements of one another, for which commuting A_a give A_u = A_u'.
        _, group_of = np.unique(np.sort(words, axis=1), axis=0, return_inverse=True)
        order = np.argsort(group_of.reshape(-1), kind="stable")
        best: FourWords | None = None
        for group in np.split(order, np.flatnonzero(np.diff(group_of.reshape(-1)[order])) + 1):
            pair = _disagreement(images[group], start, reached)
            if pair is not None and (best is None or len(reached[pair[2]]) < len(best.prefix)):
                u, other = (tuple(words[group[i]].tolist()) for i in pair[:2])
                differ_at_start = images[group[pair[0]], start] != images[group[pair[1]], start]
                best = FourWords(reached[pair[2]], u, other, bool(differ_at_start))
        if best is not None:
            return best
    return None


def _disagreement(images: np.ndarray, start: int, reached: dict[int, tuple[int, ...]]) -> tuple[int, int, int] | None:
    """Return rows i, j and a state s such that words i, j agree from exactly one of `start` and s; else None.

    Sorted by the image that should agree, a pair that differs elsewhere is found among neighbours.
    """
    first = images[:, start]
    for s in sorted(reached, key=lambda s: len(reached[s])):
        here = images[:, s]
        for equal, different in ((first, here), (here, first)):
            order = np.lexsort((different, equal))
            # Neighbours agree in the first key and differ in the second: within a run of equal keys, that finds any
            # such pair.
            split = (np.diff(equal[order]) == 0) & (np.diff(different[order]) != 0)
            if split.any():
                i = int(np.flatnonzero(split)[0])
                return int(order[i]), int(order[i + 1]), s
    return None


def _shortest_words(delta: np.ndarray, start: int) -> dict[int, tuple[int, ...]]:
    """Return a shortest word from `start` to each reachable state."""
    words: dict[int, tuple[int, ...]] = {start: ()}
    queue = deque([start])
    while queue:
        q = queue.popleft()
        for a, row in enumerate(delta):
            target = int(row[q])
            if target not in words:
                words[target] = (*words[q], a)
                queue.append(target)
    return words
