"""Find equal rows of integer tables by numbering the rows, far faster than `np.unique(axis=0)`, which sorts bytes."""

from __future__ import annotations

import numpy as np

_MAX_CODE = 2**62


def number_rows(rows: np.ndarray) -> np.ndarray:
    """Return a number for each row, such that numbers compare as rows do lexicographically: int (R, J) -> int64 (R,).

    >>> number_rows(np.array([[1, 0], [0, 2], [1, 0]])).tolist()
    [3, 2, 3]
    """
    # The entries of a row are the digits of its number; numbers that would overflow are replaced by their ranks.
    codes, span = np.zeros(len(rows), np.int64), 1
    for column in rows.T:
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        if span * (high - low + 1) > _MAX_CODE:
            used, codes = np.unique(codes, return_inverse=True)
            codes, span = codes.reshape(-1), len(used)
        codes, span = codes * (high - low + 1) + column - low, span * (high - low + 1)
    return codes


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows, sorted, and the index of each row among them: int (R, J) -> (D, J), int64 (R,).

    >>> [found.tolist() for found in distinct_rows(np.array([[1, 0], [0, 2], [1, 0]]))]
    [[[0, 2], [1, 0]], [1, 0, 1]]
    """
    _, first, number = np.unique(number_rows(rows), return_index=True, return_inverse=True)
    return rows[first], number.reshape(-1)
