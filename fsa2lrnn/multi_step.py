"""Compiled runs of automata on words, and runs of small automata on long words with several letters per step.

The kernels do not check their arguments: the caller checks that every entry of `next_state`, int64 (|Σ|, n), is in
0 … n−1.

A step q ← next_state[a, q] waits for a load from the nearest cache, some five cycles per letter. A table for m letters,
m = 2, 4 or 8, needs 1/m of the steps. The m letters are encoded as one number by joining neighbours, pairs first, which
the compiler vectorises. Eight words, or pieces of a word, are processed at a time, so that their loads overlap.

A piece of a word needs its start state. For few states, threads compute the map of states to states of each piece
independently, and the maps are composed (a parallel prefix, as in the paper's PScan, over maps in place of matrices).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

IN_FLIGHT = 8  # words, or pieces of one, that are in flight at once
FEW_STATES = 8  # chains of loads that a core follows in about the time of one
LONG = 1 << 20  # letters from which a second thread pays
_TABLE_BYTES = 1 << 14  # half of a first-level cache; the other half streams the letters
_MAX_LETTERS = 8  # per step: the bytes of a machine word
_BLOCK = 1 << 11  # letters of a word that are encoded before the steps: long enough for prefetching


@njit(cache=True)
def walk(next_state: np.ndarray, start: int, tokens: np.ndarray) -> np.ndarray:
    """Return the states q_1 … q_T after every letter of a word, tokens (T,): int64, shape (T,)."""
    states = np.empty(tokens.shape[0], np.int64)
    q = start
    for k in range(tokens.shape[0]):
        q = next_state[tokens[k], q]
        states[k] = q
    return states


@njit(cache=True, nogil=True)
def walk_words(next_state: np.ndarray, starts: np.ndarray, tokens: np.ndarray, states: np.ndarray) -> None:
    """Fill `states`, int64 (B, T), with the state after every letter of each word: starts (B,), tokens (B, T)."""
    B, T = tokens.shape
    eights = B - B % 8  # eight words at a time: their steps are independent, so that the loads overlap
    for b in range(0, eights, 8):
        q0, q1, q2, q3 = starts[b], starts[b + 1], starts[b + 2], starts[b + 3]
        q4, q5, q6, q7 = starts[b + 4], starts[b + 5], starts[b + 6], starts[b + 7]
        for k in range(T):
            q0, q1 = next_state[tokens[b, k], q0], next_state[tokens[b + 1, k], q1]
            q2, q3 = next_state[tokens[b + 2, k], q2], next_state[tokens[b + 3, k], q3]
            q4, q5 = next_state[tokens[b + 4, k], q4], next_state[tokens[b + 5, k], q5]
            q6, q7 = next_state[tokens[b + 6, k], q6], next_state[tokens[b + 7, k], q7]
            states[b, k], states[b + 1, k], states[b + 2, k], states[b + 3, k] = q0, q1, q2, q3
            states[b + 4, k], states[b + 5, k], states[b + 6, k], states[b + 7, k] = q4, q5, q6, q7
    for b in range(eights, B):
        q = starts[b]
        for k in range(T):
            q = next_state[tokens[b, k], q]
            states[b, k] = q


@dataclass(frozen=True, eq=False)
class MultiStepTable:
    """A transition table whose steps read m letters each; 16- or 32-bit unsigned integers.

    Args:
        single: the next states for one letter, shape (|Σ|·n,): letter a leads state q to `single[a * n + q]`.
        table: the next states for m letters, shape (|Σ|ᵐ·n,): w leads q to `table[code(w) * n + q]`, where code(w) has
            the letters of w as digits to the base |Σ|, the first most significant.
    """

    single: np.ndarray
    table: np.ndarray
    n_letters: int
    n_states: int
    m: int

    @classmethod
    def of(cls, next_state: np.ndarray) -> MultiStepTable:
        """Return the multi-step table of a transition table, int (|Σ|, n), with all entries in 0 … n−1.

        >>> steps = MultiStepTable.of(np.array([[0, 1], [1, 0]]))
        >>> steps.m, steps.final(0, np.array([1, 0, 1, 1]))
        (8, 1)
        """
        k, n = next_state.shape
        dtype = np.uint16 if n <= 2**16 else np.uint32
        single = np.ascontiguousarray(next_state, dtype)
        table, m = single, 1
        while k > 1 and len(table) ** 2 * n * single.itemsize <= _TABLE_BYTES and m < _MAX_LETTERS:
            table = table[:, table].swapaxes(0, 1).reshape(-1, n)  # the letters so far, then as many again
            m *= 2
        return cls(single.reshape(-1), table.reshape(-1), k, n, m)

    def final(self, start: int, tokens: np.ndarray, threads: int = 1) -> int:
        """Return the state after a word, integer tokens (T,), read from the state `start`."""
        if threads > 1 and self.n_states <= FEW_STATES and len(tokens) >= LONG:
            pieces = np.array_split(tokens, threads)
            for f in _at_once(self.map_of, pieces, threads):
                start = int(f[start])
            return start
        return int(self._along(np.array([start]), tokens)[0])

    def map_of(self, tokens: np.ndarray) -> np.ndarray:
        """Return the state to which a word, tokens (T,), leads each state: int64 (n,)."""
        return self._along(np.arange(self.n_states), tokens)

    def finals(self, starts: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Return the state after each word of a batch, tokens (B, T), read from starts (B,): int64 (B,)."""
        states = np.array(starts, np.int64)
        _finals(self.single, self.table, self.n_letters, self.n_states, self.m, states, tokens, *_buffers())
        return states

    def walk(self, start: int, tokens: np.ndarray, states: np.ndarray, threads: int = 1) -> None:
        """Fill `states`, int64 (T,), with the state after every letter of a word, tokens (T,).

        The word is cut into pieces. Multi-steps give the start state of each piece; then the pieces run in parallel.
        """
        threads = threads if len(tokens) >= LONG else 1
        n_pieces = IN_FLIGHT * threads
        size = len(tokens) // n_pieces
        whole = n_pieces * size
        pieces = tokens[:whole].reshape(n_pieces, size)
        starts = self._starts(start, pieces, threads)
        next_state = self.single.reshape(self.n_letters, self.n_states)
        filled = states[:whole].reshape(n_pieces, size)

        def fill(first: int) -> None:
            walk_words(next_state, starts[first : first + IN_FLIGHT], pieces[first : first + IN_FLIGHT], filled[first:])

        list(_at_once(fill, range(0, n_pieces, IN_FLIGHT), threads))
        last = int(states[whole - 1]) if whole else start
        states[whole:] = walk(next_state, last, tokens[whole:])

    def _starts(self, start: int, pieces: np.ndarray, threads: int) -> np.ndarray:
        starts = np.empty(len(pieces), np.int64)
        starts[0] = start
        if threads > 1 and self.n_states <= FEW_STATES:
            for i, f in enumerate(_at_once(self.map_of, pieces[:-1], threads)):
                starts[i + 1] = f[starts[i]]
        else:
            for i, piece in enumerate(pieces[:-1]):
                starts[i + 1] = self.final(int(starts[i]), piece)
        return starts

    def _along(self, states: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        _along(self.single, self.table, self.n_letters, self.n_states, self.m, states, tokens, *_buffers())
        return states


def _buffers() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(IN_FLIGHT * _BLOCK, np.uint8), np.empty((2, IN_FLIGHT * _BLOCK // 2), np.uint16)


def _at_once(act: Callable, parts: Iterable, threads: int) -> Iterable:
    if threads == 1:
        return map(act, parts)
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(act, parts))


@njit(cache=True, nogil=True)
def _join(pairs, bits, base, joined):  # type: ignore[no-untyped-def]
    low = np.uint32((1 << bits) - 1)
    for i in range(pairs.shape[0]):
        pair = np.uint32(pairs[i])
        joined[i] = np.uint32(pair & low) * np.uint32(base) + np.uint32(pair >> np.uint32(bits))


@njit(cache=True, nogil=True)
def _codes(tokens, k, m, letters, joined):  # type: ignore[no-untyped-def]
    W, L = tokens.shape
    for w in range(W):
        for i in range(L):
            letters[w * L + i] = tokens[w, i]
    n = W * L // 2
    _join(letters[: 2 * n].view(np.uint16), 8, k, joined[0])
    if m == 2:
        return joined[0, :n].reshape(W, L // 2)
    _join(joined[0, :n].view(np.uint32), 16, k**2, joined[1])
    if m == 4:
        return joined[1, : n // 2].reshape(W, L // 4)
    _join(joined[1, : n // 2].view(np.uint32), 16, k**4, joined[0])
    return joined[0, : n // 4].reshape(W, L // 8)


@njit(inline="always")
def _next(table, n, code, q):  # type: ignore[no-untyped-def]
    # Unsigned throughout: a signed index would be tested for counting from the end.
    return np.uint64(table[np.uint64(code) * n + q])


@njit(cache=True, nogil=True)
def _eight(table, n, codes, q):  # type: ignore[no-untyped-def]
    n = np.uint64(n)
    q0, q1, q2, q3 = np.uint64(q[0]), np.uint64(q[1]), np.uint64(q[2]), np.uint64(q[3])
    q4, q5, q6, q7 = np.uint64(q[4]), np.uint64(q[5]), np.uint64(q[6]), np.uint64(q[7])
    for i in range(codes.shape[1]):
        q0, q1 = _next(table, n, codes[0, i], q0), _next(table, n, codes[1, i], q1)
        q2, q3 = _next(table, n, codes[2, i], q2), _next(table, n, codes[3, i], q3)
        q4, q5 = _next(table, n, codes[4, i], q4), _next(table, n, codes[5, i], q5)
        q6, q7 = _next(table, n, codes[6, i], q6), _next(table, n, codes[7, i], q7)
    q[0], q[1], q[2], q[3] = q0, q1, q2, q3
    q[4], q[5], q[6], q[7] = q4, q5, q6, q7


@njit(cache=True, nogil=True)
def _one(table, n, codes, q):  # type: ignore[no-untyped-def]
    n = np.uint64(n)
    if q.shape[0] == 1:
        state = np.uint64(q[0])
        for code in codes:
            state = _next(table, n, code, state)
        q[0] = state
        return
    for code in codes:
        for j in range(q.shape[0]):
            q[j] = _next(table, n, code, np.uint64(q[j]))


@njit(cache=True, nogil=True)
def _finals(single, table, k, n, m, states, tokens, letters, joined):  # type: ignore[no-untyped-def]
    B, T = tokens.shape
    eights, whole = B - B % 8, T - T % m if m > 1 else 0
    block = letters.shape[0] // 8
    for b in range(0, eights, 8):
        q = states[b : b + 8]
        for t in range(0, whole, block):
            codes = _codes(tokens[b : b + 8, t : min(t + block, whole)], k, m, letters, joined)
            _eight(table, n, codes, q)
        _eight(single, n, tokens[b : b + 8, whole:], q)
    for b in range(eights, B):
        _along(single, table, k, n, m, states[b : b + 1], tokens[b], letters, joined)


@njit(cache=True, nogil=True)
def _along(single, table, k, n, m, states, tokens, letters, joined):  # type: ignore[no-untyped-def]
    T, block = tokens.shape[0], letters.shape[0] // 8
    whole = T - T % m if m > 1 else 0
    for t in range(0, whole, block):
        word = tokens[t : min(t + block, whole)]
        _one(table, n, _codes(np.expand_dims(word, 0), k, m, letters, joined)[0], states)
    _one(single, n, tokens[whole:], states)
