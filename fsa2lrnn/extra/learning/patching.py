"""Repair of a head that is nearly the machine: single columns are changed as long as that reduces the label errors.

The gradient of a head that errs on one word in a hundred depends on those words and hardly on the correct ones, so
gradient steps break as much as they fix. The last few columns are therefore found by local search. The candidates come
from a backward recursion: the cost V_k[i] of the rest of the word with the head in state i after k letters is

    V_k[i] = −log p(label_k | i) + V_{k+1}[f(a_{k+1}, i)],

with the head's label frequencies for p, so V_k[i] − V_k[q_k], summed over all visits of a column, is to first order the
change of cost if the column led to i. Then states are merged as long as that adds no error: a head has more states than
the machine needs, and words that are rare in one of several equivalent states are frequent in another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.deadline import NEVER, Deadline

_CHANGES = 200
_TRIED = 48  # changes of each kind, of which the best is kept
WORTH = 2.0  # nats that a change has to gain, by default
_SMOOTH = 0.5  # pseudo-count of each label in each state


class PatchedTable(NamedTuple):
    """A repaired table (|Σ|, b), counts of changed columns and merged states, and label errors before and after."""

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
    """Return columns (|Σ|, b) of an automaton repaired for words (B, T) with labels (B, T+1), the empty word's first.

    A change redirects a column to another state; or to a copy of its target in the place of an unreached state, where
    one column of the copy leads elsewhere. It stays if it lowers the cost of the labels by at least `worth` nats.

    Raises `OutOfTime` at the deadline.

    >>> wrong, words = np.array([[0, 1, 2], [1, 1, 2]]), np.array([[1, 1, 0, 1], [0, 1, 1, 1]])
    >>> labels = np.array([[0, 1, 0, 0, 1], [0, 0, 1, 0, 1]])
    >>> patched = patch_table(wrong, 0, words, labels, 2)
    >>> patched.before, patched.after
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
        while (smaller := _merged(f, start, tokens, labels, counts, deadline)) is not None:
            f, counts = smaller
            merged += 1
        if not _faults(counts) or merged == fewer or changes >= _CHANGES:
            return PatchedTable(f, changes, merged, before, _faults(counts))


def _merged(
    f: np.ndarray, start: int, tokens: np.ndarray, labels: np.ndarray, counts: np.ndarray, deadline: Deadline
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return columns with the rarest dispensable state merged into another, and their counts; None if none is."""
    faults, visits = _faults(counts), counts.sum(1)
    order = [q for q in np.argsort(visits, kind="stable").tolist() if visits[q]]
    for rare in order:
        for other in reversed(order):
            if rare in (other, start) or counts[rare].argmax() != counts[other].argmax():
                continue
            deadline.check("changing columns")
            changed = np.where(f == rare, other, f)
            changed_counts = _count(changed, start, tokens, labels, counts.shape[1])
            if _faults(changed_counts) <= faults:
                return changed, changed_counts
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
    """Return the best of the candidate changes with its counts; None if none gains `worth` nats."""
    best, least = None, _cost(counts) - worth
    share = (counts + _SMOOTH) / (counts + _SMOOTH).sum(1, keepdims=True)
    costs = np.ascontiguousarray(-np.log(share).T)
    copy = int(np.argmin(counts.sum(1)))  # an unreached state, if there is one
    places = _promising(*_gains(f, start, tokens, labels, costs), can_split=not counts[copy].any())
    for a, q, then, to in places:
        deadline.check("changing columns")
        changed = f.copy()
        if then < 0:
            changed[a, q] = to
        else:
            changed[:, copy], changed[a, q] = f[:, f[a, q]], copy
            changed[then, copy] = to
        changed_counts = _count(changed, start, tokens, labels, counts.shape[1])
        if (cost := _cost(changed_counts)) < least:
            best, least = (changed, changed_counts), cost
    return best


def _promising(direct: np.ndarray, split: np.ndarray, can_split: bool) -> list[tuple[int, int, int, int]]:
    """Return the most promising changes (a, q, then, to): `then` is the letter redirected in a copy, −1 for no copy."""
    changes: list[tuple[int, int, int, int]] = []
    for gains in (direct[:, :, None], *([split] if can_split else [])):
        flat = gains.ravel()
        best = np.argpartition(flat, min(_TRIED, len(flat) - 1))[:_TRIED]
        for place in best[flat[best] < 0].tolist():
            a, q, then, to = map(int, np.unravel_index(place, gains.shape))
            changes.append((a, q, then if gains is split else -1, to))
    return changes


def _faults(counts: np.ndarray) -> int:
    return int(counts.sum() - counts.max(1).sum())


def _cost(counts: np.ndarray) -> float:
    """Return −Σ log of the frequency of each label in its state, in nats: 0 if every state has one label."""
    total = counts.sum(1, keepdims=True)
    return float(-(counts * np.log(np.where(counts > 0, counts / np.maximum(total, 1), 1))).sum())


@njit(cache=True)
def _count(f, start, tokens, labels, n_outputs):
    """Return the label counts of each state, int64 (b, C)."""
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
    """Return Σ V_k[i] − V_k[q_k] over the visits of each column, from costs (C, b) of labels in states.

    The first array is (|Σ|, b, b), by column and new target i; the second (|Σ|, b, |Σ|, b) is by column, next letter
    and new target i of the next letter's column.
    """
    b, length, n_letters = f.shape[1], tokens.shape[1], f.shape[0]
    direct, split = np.zeros((n_letters, b, b)), np.zeros((n_letters, b, n_letters, b))
    states = np.empty(length + 1, np.int64)
    value, before = np.empty(b), np.empty(b)
    for i in range(tokens.shape[0]):
        states[0], last = start, 0
        for k in range(length):
            states[k + 1] = f[tokens[i, k], states[k]]
            if labels[i, k + 1] != UNCOUNTED:
                last = k + 1
        value[:] = 0
        for k in range(last, 0, -1):
            if labels[i, k] != UNCOUNTED:
                value += cost[labels[i, k]]
            a, q = tokens[i, k - 1], states[k - 1]
            here, target = value[states[k]], f[a]
            # Separate loops over one row each are vectorised.
            row = direct[a, q]
            for j in range(b):
                row[j] += value[j] - here
            if k > 1:
                row = split[tokens[i, k - 2], states[k - 2], a]
                for j in range(b):
                    row[j] += value[j] - here
            for j in range(b):
                before[j] = value[target[j]]
            value, before = before, value
    return direct, split
