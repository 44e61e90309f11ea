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

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.deadline import NEVER, Deadline

_CHANGES = 200
_RECENT = 16  # changes whose best predicts the others
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
    *,
    completely: bool = False,
    price: float = 0.0,
) -> PatchedTable:
    """Return columns (|Σ|, b) of an automaton repaired for words (B, T) with labels (B, T+1), the empty word's first.

    A change redirects a column to another state; or to a copy of its target in the place of an unreached state, where
    one column of the copy leads elsewhere. It stays if it lowers the cost of the labels by at least `worth` nats.

    Args:
        completely: whether only a table without label errors is wanted. Then the search ends once errors would be left
            even if each further change removed as many as the best of the last 16.
        price: nats by which the cost of the labels may rise when a state is merged; without it, states are merged as
            long as that adds no label error.

    Raises `OutOfTime` at the deadline.

    >>> wrong, words = np.array([[0, 1, 2], [1, 1, 2]]), np.array([[1, 1, 0, 1], [0, 1, 1, 1]])
    >>> labels = np.array([[0, 1, 0, 0, 1], [0, 0, 1, 0, 1]])
    >>> patched = patch_table(wrong, 0, words, labels, 2)
    >>> patched.before, patched.after
    (3, 0)
    """
    words = _Words(start, np.ascontiguousarray(tokens, np.int64), np.ascontiguousarray(labels, np.int64), n_outputs)
    run = words.run(np.array(next_state, np.int64, order="C"))
    before, changes, merged = _faults(run.counts), 0, 0
    faults = [before]
    while True:
        while (
            _faults(run.counts) and changes < _CHANGES and (better := _better(run, words, worth, deadline)) is not None
        ):
            run = words.run(better)
            changes += 1
            faults.append(_faults(run.counts))
            if completely and changes >= _RECENT and _is_vain(faults):
                return PatchedTable(run.next_state, changes, merged, before, faults[-1])
        fewer, needed = merged, set[int]()
        while (smaller := _merged(run, words, deadline, price, needed)) is not None:
            run = words.run(smaller)
            merged += 1
        # A state that a change is worth may be worth less than its price: a second round could go on for ever.
        if price or not _faults(run.counts) or merged == fewer or changes >= _CHANGES:
            return PatchedTable(run.next_state, changes, merged, before, _faults(run.counts))


def _is_vain(faults: list[int]) -> bool:
    """Decide whether the best of the last changes, repeated, leaves label errors; `faults` are those after each."""
    fewer = max(earlier - later for earlier, later in pairwise(faults[-_RECENT - 1 :]))
    return faults[-1] > (_CHANGES - len(faults) + 1) * max(1, fewer)


class _Run(NamedTuple):
    """A table (|Σ|, b) and what words do under it: states (N, T+1) and label counts of each state (b, C)."""

    next_state: np.ndarray
    states: np.ndarray
    counts: np.ndarray


class _Words(NamedTuple):
    """Words (N, T) with labels (N, T+1), and the state before them."""

    start: int
    tokens: np.ndarray
    labels: np.ndarray
    n_outputs: int

    def run(self, f: np.ndarray) -> _Run:
        return _Run(f, *_follow(f, *self))

    def recounts(self, run: _Run, changed: list[np.ndarray]) -> np.ndarray:
        """Return the label counts (M, b, C) of M tables, each of which changes some columns."""
        tables = np.array(changed, np.int32).reshape(-1, run.next_state.size)
        # Pairs (column, table) of all changes, sorted by column: `bounds` finds the tables that change a visited
        # column.
        columns, which = np.nonzero((tables != run.next_state.ravel()).T)
        bounds = np.searchsorted(columns, np.arange(run.next_state.size + 1))
        return _recounts(tables, bounds, which, run.states, self.tokens, self.labels, run.counts)


def _merged(run: _Run, words: _Words, deadline: Deadline, price: float, needed: set[int]) -> np.ndarray | None:
    """Return columns with the rarest dispensable state merged into another; None if there is none."""
    f, _, counts = run
    measure, most = (_cost, _cost(counts) + price) if price else (_faults, _faults(counts))
    visits = counts.sum(1)
    order = [q for q in np.argsort(visits, kind="stable").tolist() if visits[q]]
    for rare in order:
        deadline.check(f"merging {len(order)} states")
        if rare in needed:
            continue
        label = counts[rare].argmax()
        # Only states of the same usual label, the most visited first; the start keeps its state.
        others = [q for q in order[::-1] if q != rare and counts[q].argmax() == label] if rare != words.start else []
        tables = [np.where(f == rare, other, f) for other in others]
        measured = [measure(after) for after in words.recounts(run, tables)]
        if measured and min(measured) <= most:
            return tables[int(np.argmin(measured))]
        if price:  # a state that is not worth a merge once is rarely worth one later
            needed.add(rare)
    return None


def _better(run: _Run, words: _Words, worth: float, deadline: Deadline) -> np.ndarray | None:
    """Return the best of the candidate changes; None if none gains `worth` nats."""
    f, states, counts = run
    deadline.check("changing columns")
    share = (counts + _SMOOTH) / (counts + _SMOOTH).sum(1, keepdims=True)
    costs = np.ascontiguousarray(-np.log(share).T)
    copy = int(np.argmin(counts.sum(1)))  # an unreached state, if there is one
    can_split = not counts[copy].any()
    tables = list[np.ndarray]()
    for a, q, then, to in _promising(*_gains(f, states, words.tokens, words.labels, costs, can_split), can_split):
        changed = f.copy()
        if then < 0:
            changed[a, q] = to
        else:
            # The copy has the columns of the target, and only this one transition leads to it.
            changed[:, copy], changed[a, q] = f[:, f[a, q]], copy
            changed[then, copy] = to
        tables.append(changed)
    costs_after = list(map(_cost, words.recounts(run, tables)))
    best = int(np.argmin(costs_after)) if tables else -1
    return tables[best] if tables and costs_after[best] < _cost(counts) - worth else None


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
def _follow(f, start, tokens, labels, n_outputs):
    """Return the states of words, int32 (N, T+1), and the label counts of each state, int64 (b, C)."""
    states, counts = np.empty(labels.shape, np.int32), np.zeros((f.shape[1], n_outputs), np.int64)
    for i in range(tokens.shape[0]):
        q = start
        for k in range(tokens.shape[1] + 1):
            if k:
                q = f[tokens[i, k - 1], q]
            states[i, k] = q
            if labels[i, k] != UNCOUNTED:
                counts[q, labels[i, k]] += 1
    return states, counts


@njit(cache=True)
def _recounts(tables, bounds, which, states, tokens, labels, counts):
    """Return the label counts (M, b, C) of flat tables; table `which[j]` changes the column c of `bounds[c]` ≤ j."""
    b, length = counts.shape[0], tokens.shape[1]
    after, done = np.empty((len(tables), *counts.shape), np.int64), np.zeros(len(tables), np.int64)
    after[:] = counts
    for i in range(tokens.shape[0]):
        for k in range(length):
            column = tokens[i, k] * b + states[i, k]
            for j in range(bounds[column], bounds[column + 1]):
                m = which[j]
                # Table m has diverged before this position already and was followed beyond it.
                if i * length + k < done[m]:
                    continue
                # Follow the word from here on until it is back in its former state.
                q, then = states[i, k], k
                while then == k or (then < length and q != states[i, then]):
                    q = tables[m, tokens[i, then] * b + q]
                    then += 1
                    label = labels[i, then]
                    if label != UNCOUNTED:
                        # The label moves from the state of the old walk to that of the new one.
                        after[m, states[i, then], label] -= 1
                        after[m, q, label] += 1
                # From here on both walks agree again, until the next visit of a changed column.
                done[m] = i * length + then
    return after


@njit(cache=True)
def _gains(f, states, tokens, labels, cost, can_split):
    """Return Σ V_k[i] − V_k[q_k] over the visits of each column, from costs (C, b) of labels in states.

    The first array is (|Σ|, b, b), by column and new target i; the second (|Σ|, b, |Σ|, b) is by column, next letter
    and new target i of the next letter's column; 0 without `can_split`.
    """
    b, length, n_letters = f.shape[1], tokens.shape[1], f.shape[0]
    direct, split = np.zeros((n_letters * b, b)), np.zeros((n_letters * b * n_letters, b))
    value, before = np.empty(b), np.empty(b)
    # Entries are addressed one by one: a view of a row costs more than the work on it.
    for i in range(tokens.shape[0]):
        last = length
        # Positions after the last label cost nothing, so V is 0 there.
        while last and labels[i, last] == UNCOUNTED:
            last -= 1
        value[:] = 0
        for k in range(last, 0, -1):
            label = labels[i, k]
            if label != UNCOUNTED:
                for j in range(b):
                    value[j] += cost[label, j]
            a, q = tokens[i, k - 1], states[i, k - 1]
            here, row = value[states[i, k]], a * b + q
            for j in range(b):
                direct[row, j] += value[j] - here
            if can_split and k > 1:
                # The column that led to the state before this letter: leading to a copy of it instead would redirect
                # only this letter.
                row = (tokens[i, k - 2] * b + states[i, k - 2]) * n_letters + a
                for j in range(b):
                    split[row, j] += value[j] - here
            for j in range(b):
                # V before the letter a is V after it at the target of each state.
                before[j] = value[f[a, j]]
            for j in range(b):
                value[j] = before[j]
    return direct.reshape(n_letters, b, b), split.reshape(n_letters, b, n_letters, b)
