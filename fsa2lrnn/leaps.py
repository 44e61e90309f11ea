"""Long words on small tables, several letters at a time.

A step q ← next_state[a, q] waits for the one before: a load from the nearest cache, some five cycles a letter. A table
of what *m* letters do together takes as long a step and needs 1/m of the steps; m is the largest for which that table
still fits. Where only some states are possible, the maps of pieces of a word can be made in any order and composed
(a parallel prefix, as in the paper's PScan, over maps in place of matrices): so do the threads here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, prange

_TABLE_BYTES = 1 << 14  # half of a first-level cache; the other half streams the tokens
_FEW_STATES = 8  # chains of loads that a core follows in about the time of one
_LONG = 1 << 20  # letters from which a second thread pays


@dataclass(frozen=True, eq=False)
class Leaps:
    """The transition table of m letters at a time.

    Args:
        single: next states, of one letter, small unsigned ints (|Σ|·n,): that of letter a in state q at a·n + q.
        table: next states, of m letters, (|Σ|ᵐ·n,): letters as digits, the first the most significant.
        n_letters: |Σ|.
        n_states: n.
        m: letters a leap.
    """

    single: np.ndarray
    table: np.ndarray
    n_letters: int
    n_states: int
    m: int

    @classmethod
    def of(cls, next_state: np.ndarray) -> Leaps:
        """The leaps of a transition table, int (|Σ|, n), all entries in 0 … n−1.

        >>> leaps = Leaps.of(np.array([[0, 1], [1, 0]]))
        >>> leaps.m, leaps.final(0, np.array([1, 0, 1, 1]))
        (13, 1)
        """
        k, n = next_state.shape
        dtype = np.uint8 if n <= 2**8 else np.uint16 if n <= 2**16 else np.uint32
        single = np.ascontiguousarray(next_state, dtype)
        table, m = single, 1
        while k > 1 and table.nbytes * k <= _TABLE_BYTES:
            table = single[:, table].swapaxes(0, 1).reshape(-1, n)  # the letters so far, then one more
            m += 1
        return cls(single.reshape(-1), table.reshape(-1), k, n, m)

    def final(self, start: int, tokens: np.ndarray, threads: int = 1) -> int:
        """The state after a word, unsigned or signed integer tokens (T,)."""
        if threads > 1 and self.n_states <= _FEW_STATES and len(tokens) >= _LONG:
            maps = _piecewise(self.single, self.table, self.n_letters, self.n_states, self.m, tokens, threads)
            for f in maps:
                start = int(f[start])
            return start
        return int(_final(self.single, self.table, self.n_letters, self.n_states, self.m, start, tokens))

    def map_of(self, tokens: np.ndarray) -> np.ndarray:
        """The state that a word leads each state to, int64 (n,)."""
        return _map_of(self.single, self.table, self.n_letters, self.n_states, self.m, tokens)

    def finals(self, starts: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The states after a batch of words of one length, tokens (B, T), from starts (B,): int64 (B,)."""
        return _finals(self.single, self.table, self.n_letters, self.n_states, self.m, starts, tokens)


@njit(inline="always")  # as a call it would cost half the speed
def _code(tokens, t, m, k):  # type: ignore[no-untyped-def]
    """The m letters from position t on as one number, the first digit the most significant."""
    code = 0
    for i in range(m):
        code = code * k + tokens[t + i]
    return code


@njit(cache=True, nogil=True)
def _final(single, table, k, n, m, q, tokens):  # type: ignore[no-untyped-def]
    T = tokens.shape[0]
    whole = T - T % m
    for t in range(0, whole, m):
        code = _code(tokens, t, m, k)
        q = table[code * n + q]
    for t in range(whole, T):
        q = single[tokens[t] * n + q]
    return q


@njit(cache=True, nogil=True)
def _map_of(single, table, k, n, m, tokens):  # type: ignore[no-untyped-def]
    f = np.arange(n)
    T = tokens.shape[0]
    whole = T - T % m
    for t in range(0, whole, m):
        code = _code(tokens, t, m, k)
        for q in range(n):
            f[q] = table[code * n + f[q]]
    for t in range(whole, T):
        for q in range(n):
            f[q] = single[tokens[t] * n + f[q]]
    return f


@njit(cache=True, parallel=True)
def _piecewise(single, table, k, n, m, tokens, pieces):  # type: ignore[no-untyped-def]
    maps = np.empty((pieces, n), np.int64)
    size = (tokens.shape[0] + pieces - 1) // pieces
    for p in prange(pieces):
        maps[p] = _map_of(single, table, k, n, m, tokens[p * size : min((p + 1) * size, tokens.shape[0])])
    return maps


@njit(cache=True, nogil=True)
def _finals(single, table, k, n, m, starts, tokens):  # type: ignore[no-untyped-def]
    B, T = tokens.shape
    result = np.empty(B, np.int64)
    whole = T - T % m
    lanes = 8  # words in flight, so that their loads overlap
    for first in range(0, B, lanes):
        width = min(lanes, B - first)
        q = np.empty(lanes, np.int64)
        for w in range(width):
            q[w] = starts[first + w]
        for t in range(0, whole, m):
            for w in range(width):
                code = _code(tokens[first + w], t, m, k)
                q[w] = table[code * n + q[w]]
        for t in range(whole, T):
            for w in range(width):
                q[w] = single[tokens[first + w, t] * n + q[w]]
        for w in range(width):
            result[first + w] = q[w]
    return result
