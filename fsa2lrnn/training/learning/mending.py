"""Mending a head that is nearly the machine: columns are changed one at a time, as long as fewer labels are missed.

A gradient sees the words that are wrong, and hardly those that are right already: where a head errs on one word in a
hundred, steps along it put as much out of order as in. So the last few columns are found by trial. Which ones to try is
read off the words: V_k[i], what the rest of the word would cost with the head in state i after k letters, is

    V_k[i] = −log p(label_k | i) + V_{k+1}[f(a_{k+1}, i)],

with the head's own shares of labels for p, so V_k[i] − V_k[q_k] summed over all visits of a column says, to first
order, what it would gain by leading to i. Then states are merged as long as that costs no label: a head has more states
than the machine needs, and what words seldom do in one of several equal states they do in another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.deadline import NEVER, Deadline

_CHANGES = 200
_TRIED = 48  # changes of each kind, of which the best is kept
WORTH = 2.0  # nats that a change has to bring, by default
_SMOOTH = 0.5  # labels that each state has of each kind before any was counted


class PatchedTable(NamedTuple):
    """Columns (|Σ|, b), how many were changed and states merged, and the labels, before and after, that are others than
    those of most in their state."""

    next_state: np.ndarray
    changes: int
    merged: int
    before: int
    after: int


def patch_table(
    next_state: np.ndarray,
    start: int,
    tokens: np.ndarray,
    labels: np.ndarray,
    n_outputs: int,
    worth: float = WORTH,
    deadline: Deadline = NEVER,
) -> PatchedTable:
    """Change columns (|Σ|, b) of an automaton for words (B, T) with labels (B, T+1), the empty word's first.

    A change is kept if labels then follow more surely from states. It leads a column to another state; or to a copy of
    the one that it leads to, in the place of a state that no word reaches, with a column of the copy leading elsewhere.
    `worth` is by how many nats. Raises `OutOfTime`.

    >>> wrong, words = np.array([[0, 1, 2], [1, 1, 2]]), np.array([[1, 1, 0, 1], [0, 1, 1, 1]])
    >>> labels = np.array([[0, 1, 0, 0, 1], [0, 0, 1, 0, 1]])
    >>> found = patch_table(wrong, 0, words, labels, 2)
    >>> found.before, found.after
    (3, 0)
    """
    f = np.ascontiguousarray(next_state, dtype=np.int64).copy()
    tokens, labels = (np.ascontiguousarray(words, dtype=np.int64) for words in (tokens, labels))
    counts = _count(f, start, tokens, labels, n_outputs)
    before, changes, merged = _faults(counts), 0, 0
    while True:
        while (
            _faults(counts)
            and changes < _CHANGES
            and (better := _better(f, start, tokens, labels, counts, worth, deadline)) is not None
        ):
            f, counts = better
            changes += 1
        fewer = merged
        while (found := _merged(f, start, tokens, labels, counts, deadline)) is not None:
            f, counts = found
            merged += 1
        if not _faults(counts) or merged == fewer or changes >= _CHANGES:
            return PatchedTable(f, changes, merged, before, _faults(counts))


def _merged(
    f: np.ndarray, start: int, tokens: np.ndarray, labels: np.ndarray, counts: np.ndarray, deadline: Deadline
) -> tuple[np.ndarray, np.ndarray] | None:
    """Columns that lead to one state in place of another, the rarest that can be missed; None if none can."""
    faults, visits = _faults(counts), counts.sum(1)
    order = [q for q in np.argsort(visits, kind="stable").tolist() if visits[q]]
    for rare in order:
        for other in reversed(order):
            if rare in (other, start) or counts[rare].argmax() != counts[other].argmax():
                continue
            deadline.check("changing columns")
            changed = np.where(f == rare, other, f)
            there = _count(changed, start, tokens, labels, counts.shape[1])
            if _faults(there) <= faults:
                return changed, there
    return None


def _better(
    f: np.ndarray,
    start: int,
    tokens: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    worth: float,
    deadline: Deadline,
) -> tuple[np.ndarray, np.ndarray] | None:
    """The best of the changes that are tried, with its counts; None if none is better than none."""
    best, least = None, _cost(counts) - worth
    share = (counts + _SMOOTH) / (counts + _SMOOTH).sum(1, keepdims=True)
    costs = np.ascontiguousarray(-np.log(share).T)
    copy = int(np.argmin(counts.sum(1)))  # no word reaches it, where there is such a state
    places = _promising(*_gains(f, start, tokens, labels, costs), has_room=not counts[copy].any())
    for a, q, then, to in places:
        deadline.check("changing columns")
        changed = f.copy()
        if then < 0:
            changed[a, q] = to
        else:
            changed[:, copy], changed[a, q] = f[:, f[a, q]], copy
            changed[then, copy] = to
        there = _count(changed, start, tokens, labels, counts.shape[1])
        if (found := _cost(there)) < least:
            best, least = (changed, there), found
    return best


def _promising(direct: np.ndarray, split: np.ndarray, has_room: bool) -> list[tuple[int, int, int, int]]:
    """Columns a, q that lead elsewhere; or to a copy of their state, of which the letter `then` leads elsewhere: −1 for
    none. Those that promise most."""
    found: list[tuple[int, int, int, int]] = []
    for gains in (direct[:, :, None], *([split] if has_room else [])):
        flat = gains.ravel()
        best = np.argpartition(flat, min(_TRIED, len(flat) - 1))[:_TRIED]
        for place in best[flat[best] < 0].tolist():
            a, q, then, to = map(int, np.unravel_index(place, gains.shape))
            found.append((a, q, then if gains is split else -1, to))
    return found


def _faults(counts: np.ndarray) -> int:
    return int(counts.sum() - counts.max(1).sum())


def _cost(counts: np.ndarray) -> float:
    """−Σ log of the share that each label has in its state, in nats: 0 if every state has one label."""
    total = counts.sum(1, keepdims=True)
    return float(-(counts * np.log(np.where(counts > 0, counts / np.maximum(total, 1), 1))).sum())


@njit(cache=True)
def _count(f, start, tokens, labels, n_outputs):
    """Labels by state: int64 (b, C)."""
    counts = np.zeros((f.shape[1], n_outputs), np.int64)
    for i in range(tokens.shape[0]):
        q = start
        for k in range(tokens.shape[1] + 1):
            if k:
                q = f[tokens[i, k - 1], q]
            if labels[i, k] != UNCOUNTED:
                counts[q, labels[i, k]] += 1
    return counts


@njit(cache=True)
def _gains(f, start, tokens, labels, cost):
    """Σ V_k[i] − V_k[q_k] over the visits of each column (|Σ|, b, b), and over those of each column and the letter read
    next, of which the second leads to i (|Σ|, b, |Σ|, b), from costs (C, b) of labels in states."""
    b, length, n_letters = f.shape[1], tokens.shape[1], f.shape[0]
    direct, split = np.zeros((n_letters, b, b)), np.zeros((n_letters, b, n_letters, b))
    states = np.empty(length + 1, np.int64)
    value, before = np.empty(b), np.empty(b)
    for i in range(tokens.shape[0]):
        states[0] = start
        for k in range(length):
            states[k + 1] = f[tokens[i, k], states[k]]
        value[:] = 0
        for k in range(length, 0, -1):
            if labels[i, k] != UNCOUNTED:
                value += cost[labels[i, k]]
            a, q = tokens[i, k - 1], states[k - 1]
            here = value[states[k]]
            for j in range(b):
                gain = value[j] - here
                direct[a, q, j] += gain
                if k > 1:
                    split[tokens[i, k - 2], states[k - 2], a, j] += gain
                before[j] = value[f[a, j]]
            value[:] = before
    return direct, split
