"""Reachability on bare transition tables: states along words, coaccessible states, settled states."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.table_kernels import can_reach
from fsa2lrnn.multi_step import walk_words


def paths(delta: np.ndarray, q: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Return the states after each letter of N words, int64 (N, T), each from its own state.

    Args:
        delta: int64 (|Σ|, n).
        q: int64 (N,).
        tokens: int64 (N, T).

    >>> paths(np.array([[0, 1], [1, 0]]), np.array([0, 1]), np.array([[1, 0, 1], [1, 0, 0]])).tolist()
    [[1, 1, 0], [0, 0, 0]]
    """
    states = np.empty(tokens.shape, np.int64)
    delta, q, tokens = (np.ascontiguousarray(table, np.int64) for table in (delta, q, tokens))
    walk_words(delta, q, tokens, states)
    return states


def coaccessible(delta: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the coaccessible states: some word, possibly empty, leads to a target state: bool (n,) -> (n,).

    >>> coaccessible(np.array([[1, 2, 2]]), np.array([False, True, False])).tolist()
    [True, True, False]
    """
    return can_reach(np.ascontiguousarray(delta, np.int64), np.ascontiguousarray(targets, np.bool_))


def settled(delta: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the states from which every word leads to a state of the same class: int64 (n,) -> bool (n,).

    >>> settled(np.array([[1, 2, 2]]), np.array([0, 1, 1])).tolist()
    [False, True, True]
    """
    return ~coaccessible(delta, (classes[delta] != classes).any(0))
