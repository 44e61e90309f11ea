"""Compiled runs of automata on words.

The kernels do not check their arguments: the caller checks that every entry of `next_state`, int64 (|Σ|, n), is in
0 … n−1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_IN_FLIGHT = 8  # words whose steps alternate: a step waits for a load from the cache, and their loads overlap


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
    n_words, length = tokens.shape
    q = starts.copy()
    for first in range(0, n_words, _IN_FLIGHT):
        for k in range(length):
            for b in range(first, min(first + _IN_FLIGHT, n_words)):
                q[b] = next_state[tokens[b, k], q[b]]
                states[b, k] = q[b]
