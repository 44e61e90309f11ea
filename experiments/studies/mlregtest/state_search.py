"""Local search for a small automaton that is right on all labelled words: one transition at a time, one state more.

A machine is judged by the entropy of the labels of the words that end in each of its states, in bits: 0 if every state
has words of one label only. `_climb` redirects single transitions as long as the entropy falls. Where it stops,
`_split` gives one transition a target of its own, a copy of the former one, and changes one transition of the copy. A
round begins with random machines of several sizes on some of the words, twice as many as the round before, and goes on
with the best one; words that a machine without entropy gets wrong are added, in later rounds too. `simplified` reduces
a machine that is right on all words.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product

import numpy as np
from numba import njit

from fsa2lrnn.automata.machine import MooreMachine

_SIZES = (2, 3, 4, 5, 6, 7, 8, 10, 12)  # states of the machines of a round, of which the best one grows
_FEW, _ADDED = 1000, 300  # words at first, and wrong ones that are added at a time
_MANY = 10_000  # words for which the table of least entropy is changed at last
_PATIENCE, _DESCENT = 4, 0.6  # after so many splits this share of the entropy, at most, is left
_MOST = 24  # states
_EDGES = 40.0  # transitions that a split tries, on average
_CANDIDATES = 2  # machines among which the smallest is chosen
_MERGEABLE = 400  # states of a machine that is reduced

Words = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Tokens int64 (N, T), padded; lengths and labels, 0 or 1, of each word, (N,)."""


def search(words: Words, n_letters: int, seconds: float, seed: int = 0) -> tuple[MooreMachine | None, np.ndarray]:
    """Return a small machine over the letters 0 … n−1 that is right on all words, and the table of least entropy.

    None for the machine if none was found in `seconds` of processor time. The first words are taken first.
    """
    random = np.random.default_rng(seed)
    begun, end = time.process_time(), time.process_time() + seconds
    few = np.arange(min(_FEW, len(words[0])))
    best: MooreMachine | None = None
    closest, least = np.zeros((n_letters, 1), np.int64), np.inf
    candidates, repeats = 0, 1
    while time.process_time() < end and candidates < _CANDIDATES:
        bits, start, first = np.inf, closest, _some(words, few)
        for n in _SIZES * repeats:
            delta = random.integers(0, n, (n_letters, n))
            if (new := _climb(delta, *first, random) + delta.size) < bits:
                bits, start = new, delta
            if time.process_time() > end:
                break
        repeats *= 2
        delta, machine, hard = _descend(start, words, few, random, end)
        # Words that were wrong are among the words of the next rounds.
        few = np.concatenate([few[:_FEW], hard[_FEW:][-_FEW:]])
        if (found := entropy(delta, words)) < least:
            closest, least = delta, found
        if machine is None:
            continue
        candidates += 1
        machine = simplified(machine, words)
        if best is None or complexity(machine) < complexity(best):
            best = machine
        end = min(end, 2 * time.process_time() - begun + 0.5)  # as long again for further candidates
    if best is None:
        _climb(closest, *_some(words, np.arange(min(_MANY, len(words[0])))), random)
    return best, closest


def _some(words: Words, chosen: np.ndarray) -> Words:
    tokens, lengths, labels = words
    return np.ascontiguousarray(tokens[chosen]), lengths[chosen], labels[chosen]


def _descend(delta, words: Words, few, random, end) -> tuple[np.ndarray, MooreMachine | None, np.ndarray]:
    """Climb and split in turn, with wrong words added.

    Return the table, its machine if it is right on all words, and the numbers of the words.
    """
    some, entropies = _some(words, few), list[float]()
    while time.process_time() < end:
        bits = _climb(delta, *some, random)
        delta = _reachable(delta)
        if bits == 0:
            outputs = label_counts(delta, *some).argmax(1)
            wrong = np.flatnonzero(outputs[ends(delta, *words[:2])] != words[2])
            if not len(wrong):
                machine = MooreMachine(delta=delta, outputs=outputs.tolist(), alphabet=range(len(delta)))
                return delta, machine.minimise(), few
            few = np.concatenate([few, random.permutation(wrong)[:_ADDED]])
            some = _some(words, few)
            entropies.clear()
            continue
        entropies.append(bits)
        stalls = len(entropies) > _PATIENCE and bits > _DESCENT * entropies[-1 - _PATIENCE]
        if stalls or delta.shape[1] >= _MOST:
            break
        delta = _split(delta, *some, random, _EDGES / (2 * delta.size))
    return delta, None, few


def entropy(delta: np.ndarray, words: Words) -> float:
    """Return the bits that tell the labels if the last states of a table with start 0 are known."""
    return _entropy(label_counts(delta, *words))


def errors_of(machine: MooreMachine, words: Words) -> int:
    """Return how many words a machine with the outputs 0 and 1 gets wrong."""
    delta, outputs = from_zero(machine)
    return int((outputs[ends(delta, *words[:2])] != words[2]).sum())


def complexity(machine: MooreMachine) -> tuple[int, int]:
    """Return the number of states, and of pairs of a state and a next state."""
    return machine.n_states, sum(len(set(row)) for row in np.asarray(machine.delta).T.tolist())


def simplified(machine: MooreMachine, words: Words) -> MooreMachine:
    """Return a machine of less complexity that gets the same words right, by one change at a time.

    A change unites two states, or gives one transition the target of another transition of its state.
    """
    is_simpler = machine.n_states <= _MERGEABLE
    while is_simpler:
        is_simpler = False
        delta, outputs = from_zero(machine)
        for start, changed in _changes(delta):
            if not _is_pure(changed, start, *words):
                continue
            counts = label_counts(changed, *words, start)
            of = np.where(counts.any(1), counts.argmax(1), outputs)
            new = MooreMachine(delta=changed, outputs=of.tolist(), start=start, alphabet=machine.alphabet).minimise()
            if complexity(new) < complexity(machine):
                machine, is_simpler = new, True
                break
    return machine


def _changes(delta: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the start and the table after each change that `simplified` tries."""
    k, n = delta.shape
    for q, p in product(range(n), range(n)):
        if p != q:
            yield p if q == 0 else 0, np.where(delta == q, p, delta)
    for q, a in product(range(n), range(k)):
        for r in set(delta[:, q].tolist()) - {delta[a, q]}:
            changed = delta.copy()
            changed[a, q] = r
            yield 0, changed


def from_zero(machine: MooreMachine) -> tuple[np.ndarray, np.ndarray]:
    """Return the table and the outputs with the start as state 0."""
    order = np.arange(machine.n_states)
    order[[0, machine.start]] = machine.start, 0
    return order[np.asarray(machine.delta)[:, order]], np.array(machine.outputs)[order]


@njit(cache=True)
def ends(delta, tokens, lengths):
    """Return the state after each word."""
    last = np.zeros(len(tokens), np.int64)
    for i in range(len(tokens)):
        for t in range(lengths[i]):
            last[i] = delta[tokens[i, t], last[i]]
    return last


@njit(cache=True)
def label_counts(delta, tokens, lengths, labels, start=0):
    """Return how many words of each label end in each state, int64 (n, 2)."""
    counts = np.zeros((delta.shape[1], 2), np.int64)
    for i in range(len(tokens)):
        q = start
        for t in range(lengths[i]):
            q = delta[tokens[i, t], q]
        counts[q, labels[i]] += 1
    return counts


@njit(cache=True)
def _is_pure(delta, start, tokens, lengths, labels):
    """Return whether no state ends words of both labels."""
    of = np.full(delta.shape[1], -1)
    for i in range(len(tokens)):
        q = start
        for t in range(lengths[i]):
            q = delta[tokens[i, t], q]
        if of[q] < 0:
            of[q] = labels[i]
        elif of[q] != labels[i]:
            return False
    return True


@njit(cache=True)
def _entropy(counts):
    bits = 0.0
    for a, b in counts:
        if a > 0 and b > 0:
            bits -= a * np.log2(a / (a + b)) + b * np.log2(b / (a + b))
    return bits


@njit(cache=True)
def _reachable(delta):
    """Return the table of the states that the start 0 reaches, numbered in breadth-first order."""
    number = np.full(delta.shape[1], -1)
    order = np.zeros(delta.shape[1], np.int64)
    number[0], n = 0, 1
    for i in range(delta.shape[1]):
        if i == n:
            break
        for r in delta[:, order[i]]:
            if number[r] < 0:
                number[r] = n
                order[n] = r
                n += 1
    table = np.empty((delta.shape[0], n), np.int64)
    for i in range(n):
        for a in range(delta.shape[0]):
            table[a, i] = number[delta[a, order[i]]]
    return table


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
        begin = first[a, q, i]
        if begin < 0:
            continue
        s = delta[a, q]
        t = begin
        # Where the path meets the former one after the last use of the transition, the end is the same.
        while t < lengths[i] - 1 and (s != path[i, t] or t < last[a, q, i]):
            t += 1
            s = delta[tokens[i, t], s]
        if t == lengths[i] - 1:
            new[path[i, t], labels[i]] -= 1
            new[s, labels[i]] += 1
    return _entropy(new)


@njit(cache=True)
def _climb(delta, tokens, lengths, labels, random):
    """Redirect single transitions, in a random order, as long as the entropy falls; return it."""
    k, n = delta.shape
    path = np.zeros(tokens.shape, np.int16)
    first, last = np.empty((k, n, len(tokens)), np.int8), np.empty((k, n, len(tokens)), np.int8)
    counts, new = np.zeros((n, 2)), np.zeros((n, 2))
    moves = np.arange(k * n * n)
    while True:
        _trace(delta, tokens, lengths, labels, path, first, last, counts)
        best, has_fallen = _entropy(counts), False
        random.shuffle(moves)
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
def _split(delta, tokens, lengths, labels, random, share):
    """Return the table of least entropy with one state more, among a share of the transitions to split.

    The new state is the target of one transition and a copy of its former target, whose loops may become its own; one
    of its transitions may be changed.
    """
    k, n = delta.shape
    path = np.zeros(tokens.shape, np.int16)
    first, last = np.empty((k, n + 1, len(tokens)), np.int8), np.empty((k, n + 1, len(tokens)), np.int8)
    counts, new = np.zeros((n + 1, 2)), np.zeros((n + 1, 2))
    d = np.zeros((k, n + 1), np.int64)
    d[:, :n] = delta
    chosen, best = d.copy(), np.inf
    for edge in range(2 * k * n):
        a, q, has_loops = edge // (2 * n), edge // 2 % n, edge % 2
        if random.random() > share:
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
