"""Heads of Householder products in floating point: orthogonal letters as reflections (T36 (c) of docs/theory.md).

Letters that permute the states permute the values of a function, which keeps its mean and its sum of squares. So in
functions of mean zero that are orthonormal as rows of n values, such letters are orthogonal and nothing is added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import NotExact
from fsa2lrnn.extra.block_size.blocks import StateBlock
from fsa2lrnn.families.affine import HeadTables

_STILL = 1e-9  # how far an orthogonal matrix moves what it fixes, after rounding


def head_tables(machine: MooreMachine, heads: Sequence[StateBlock], m: int) -> HeadTables:
    """Return heads of at most m factors per letter and head, for letters that are permutations and constants.

    Raises:
        NotExact: if more are needed after rounding.
    """
    n_letters, b = len(machine.alphabet), max(head.real_size for head in heads)
    keys = np.zeros((n_letters, len(heads), m, b))
    shifts, vectors = np.zeros((n_letters, len(heads), b)), np.zeros((machine.n_states, len(heads), b))
    for h, head in enumerate(heads):
        functions, size = head.rounded()[0], head.real_size
        centred = functions - functions.mean(axis=1, keepdims=True)
        x = np.linalg.solve(np.linalg.cholesky(centred @ centred.T), centred)  # x xᵀ = I
        x *= np.sqrt(machine.n_states)  # vectors of size about 1
        vectors[:, h, :size] = x.T
        for a, row in enumerate(machine.delta):
            if len(np.unique(row)) == 1:
                found = np.eye(size)
                shifts[a, h, :size] = x[:, row[0]]
            else:
                found = np.sqrt(2) * reflections(x[:, row] @ x.T / machine.n_states)
            if len(found) > m:
                raise NotExact(f"a head of {size} dimensions takes {len(found)} factors, not {m}, after rounding")
            keys[a, h, : len(found), :size] = found
    return HeadTables(keys, shifts, vectors)


def reflections(A: np.ndarray) -> np.ndarray:
    """Return rank(A − I) unit vectors k with A = ∏ (I − 2 k kᵀ) for an orthogonal A, in order of application.

    Each exchanges A x and x for a vector x that is moved, and leaves what A fixes where it is.

    >>> reflections(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3).tolist()
    [[-0.707, 0.707]]
    """
    b, keys = len(A), list[np.ndarray]()
    while (moved := np.linalg.norm(A - np.eye(b), axis=0)).max() > _STILL and len(keys) < b:
        x = np.eye(b)[moved.argmax()]
        k = (A @ x - x) / moved.max()
        keys.append(k)
        A = A - 2 * np.outer(k, k @ A)
    return np.array(keys[::-1]).reshape(-1, b)
