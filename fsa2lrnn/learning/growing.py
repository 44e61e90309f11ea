"""Small machines for words with one label of two at the end, grown one transition and one state at a time.

A table is judged by the entropy of the labels of the words that end in each of its states, in bits: 0 if every state
has words of one label only. Single transitions are redirected as long as the entropy falls. Where it stops, one
transition gets a target of its own, a copy of the former one, and one transition of the copy may change. A round begins
with random tables of several sizes for some of the words, and goes on with the best one; words that a table without
entropy gets wrong are added.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.learning.decision_lists import Words, some, wrong_words

_SIZES = (2, 3, 4, 5, 6, 7, 8, 10, 12)  # states of the tables with which a round begins
_FEW, _ADDED = 1000, 300  # words at first, and wrong ones that are added at a time
_PATIENCE, _DESCENT = 4, 0.6  # after so many splits this share of the entropy, at most, is left
_MOST, _EDGES = 24, 40.0  # states, and transitions that a split tries on average


def grown(words: Words, k: int, limit: Deadline, seed: int = 0) -> Iterator[MooreMachine]:
    """Yield machines over the letters 0 … k − 1 that are right on all words, without end.

    Raises `OutOfTime` at the deadline.
    """
    rng, few, repeats = np.random.default_rng(seed), np.arange(min(_FEW, len(words[2]))), 1
    while True:
        starts = list[tuple[float, np.ndarray]]()
        for n in _SIZES * repeats:
            limit.check("growing a small machine")
            delta = rng.integers(n, size=(k, n))
            starts.append((_climb(delta, *some(words, few), rng) + delta.size, delta))
        delta, repeats, entropies = min(starts, key=lambda each: each[0])[1], 2 * repeats, list[float]()
        while True:
            limit.check("growing a small machine")
            chosen = some(words, few)
            bits = _climb(delta, *chosen, rng)
            # With outputs that all differ, minimising leaves out the unreached states alone.
            delta = MooreMachine(delta, range(delta.shape[1]), 0, range(k)).minimise().delta.copy()
            if bits == 0:
                outputs = _counts(delta, *chosen).argmax(1).tolist()
                machine = MooreMachine(delta, outputs, 0, range(k))
                wrong = np.flatnonzero(wrong_words(machine, words))
                if not len(wrong):
                    yield machine.minimise()
                    break
                few = np.concatenate([few, rng.permutation(wrong)[:_ADDED]])
                entropies.clear()
                continue
            entropies.append(bits)
            stalls = len(entropies) > _PATIENCE and bits > _DESCENT * entropies[-1 - _PATIENCE]
            if stalls or delta.shape[1] >= _MOST:
                break
            delta = _split(delta, *chosen, rng, _EDGES / (2 * delta.size))
        few = np.concatenate([few[:_FEW], few[_FEW:][-_FEW:]])  # the latest wrong words stay


@njit(cache=True)
def _counts(delta, tokens, lengths, labels):
    """Return how many words of each label end in each state, int64 (n, 2)."""
    counts = np.zeros((delta.shape[1], 2), np.int64)
    for i in range(len(tokens)):
        q = 0
        for t in range(lengths[i]):
            q = delta[tokens[i, t], q]
        counts[q, labels[i]] += 1
    return counts


@njit(cache=True)
def _entropy(counts):
    bits = 0.0
    for a, b in counts:
        if a > 0 and b > 0:
            bits -= a * np.log2(a / (a + b)) + b * np.log2(b / (a + b))
    return bits


@njit(cache=True)
def _trace(delta, tokens, lengths, labels, path, first, last, counts):
    """Write the states along each word, and the first and the last use of each transition by each word."""
    first[:], last[:], counts[:] = -1, -1, 0
    for i in range(len(tokens)):
        q = 0
        for t in range(lengths[i]):
            a = tokens[i, t]
            if first[a, q, i] < 0:
                first[a, q, i] = t
            last[a, q, i] = t
            q = delta[a, q]
            path[i, t] = q
        counts[q, labels[i]] += 1


@njit(cache=True)
def _changed(delta, a, q, tokens, lengths, labels, path, first, last, counts, new):
    """Return the entropy after a change of one transition (a, q) of the traced table."""
    new[:] = counts
    for i in range(len(tokens)):
        t = first[a, q, i]
        if t < 0:
            continue
        s, end = delta[a, q], lengths[i] - 1
        # Where the path meets the former one after the last use of the transition, the end is the same.
        while t < end and (s != path[i, t] or t < last[a, q, i]):
            t += 1
            s = delta[tokens[i, t], s]
        if t == end:
            new[path[i, t], labels[i]] -= 1
            new[s, labels[i]] += 1
    return _entropy(new)


@njit(cache=True)
def _climb(delta, tokens, lengths, labels, rng):
    """Redirect single transitions in place, in a random order, as long as the entropy falls; return it."""
    k, n = delta.shape
    path = np.zeros(tokens.shape, np.int16)
    first, last = np.empty((k, n, len(tokens)), np.int32), np.empty((k, n, len(tokens)), np.int32)
    counts, new = np.zeros((n, 2)), np.zeros((n, 2))
    moves = np.arange(k * n * n)
    while True:
        _trace(delta, tokens, lengths, labels, path, first, last, counts)
        best, has_fallen = _entropy(counts), False
        rng.shuffle(moves)
        for move in moves:
            a, q, r = move // (n * n), move // n % n, move % n
            old = delta[a, q]
            if best == 0 or r == old:
                continue
            delta[a, q] = r
            if _changed(delta, a, q, tokens, lengths, labels, path, first, last, counts, new) < best - 1e-9:
                has_fallen = True
                break
            delta[a, q] = old
        if not has_fallen:
            return best


@njit(cache=True)
def _split(delta, tokens, lengths, labels, rng, share):
    """Return the table of least entropy with one state more, among a share of the transitions to split.

    The new state is the target of one transition and a copy of its former target, whose loops may become its own; one
    of its transitions may be changed.
    """
    k, n = delta.shape
    path = np.zeros(tokens.shape, np.int16)
    first, last = np.empty((k, n + 1, len(tokens)), np.int32), np.empty((k, n + 1, len(tokens)), np.int32)
    counts, new = np.zeros((n + 1, 2)), np.zeros((n + 1, 2))
    d = np.zeros((k, n + 1), np.int64)
    d[:, :n] = delta
    chosen, best = d.copy(), np.inf
    for edge in range(2 * k * n):
        a, q, has_loops = edge // (2 * n), edge // 2 % n, edge % 2
        if rng.random() > share:
            continue
        r = delta[a, q]
        d[:, :n], d[:, n] = delta, delta[:, r]
        if has_loops:
            d[:, n] = np.where(d[:, n] == r, n, d[:, n])
        d[a, q] = n
        _trace(d, tokens, lengths, labels, path, first, last, counts)
        for b in range(k):
            old = d[b, n]
            for to in range(n + 1):
                d[b, n] = to
                entropy = _changed(d, b, n, tokens, lengths, labels, path, first, last, counts, new)
                if entropy < best:
                    best = entropy
                    chosen[:] = d
            d[b, n] = old
    return chosen
