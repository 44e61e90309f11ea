"""Where letters lead, on bare tables: states along words, and the states from which something can still change."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.graph_kernels import walk_words


def paths(delta: np.ndarray, q: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The states after every letter of N words, each from its own state.

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


def hopeful(delta: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The states from which some word, if only the empty one, leads to one that is wanted: bool (n,) -> (n,).

    >>> hopeful(np.array([[1, 2, 2]]), np.array([False, True, False])).tolist()
    [True, True, False]
    """
    found = wanted
    while not np.array_equal(more := found | found[delta].any(0), found):
        found = more
    return found


def settled(delta: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The states from which every word leads to a state of the same class as theirs: int64 (n,) -> bool (n,).

    >>> settled(np.array([[1, 2, 2]]), np.array([0, 1, 1])).tolist()
    [False, True, True]
    """
    found = (classes[delta] == classes).all(0)
    while not np.array_equal(fewer := found & found[delta].all(0), found):
        found = fewer
    return found
