"""Words as paths in a tree that grows by a level at a time."""

from __future__ import annotations

import numpy as np


class Tree:
    """For each node of the last level the word that leads to it; a new tree has the root alone.

    >>> tree = Tree()
    >>> tree.grow(np.array([0, 0]), np.array([7, 8]))
    >>> tree.grow(np.array([1]), np.array([9]))
    >>> tree.word(0).tolist()
    [8, 9]
    """

    def __init__(self) -> None:
        self._levels: list[tuple[np.ndarray, np.ndarray]] = []

    def grow(self, parents: np.ndarray, letters: np.ndarray) -> None:
        """A new level: node i hangs on node parents[i] of the last one by letters[i]."""
        self._levels.append((parents, letters))

    def longer(self, parents: np.ndarray, letters: np.ndarray, nodes: np.ndarray) -> list[np.ndarray]:
        """The words of some nodes of a level that would hang on this one by these letters."""
        return [np.append(self.word(int(parents[i])), letters[i]) for i in nodes]

    def word(self, node: int) -> np.ndarray:
        """The letters from the root to a node of the last level: int64 (levels,)."""
        word = np.empty(len(self._levels), np.int64)
        for k in range(len(self._levels) - 1, -1, -1):
            parents, letters = self._levels[k]
            word[k], node = letters[node], int(parents[node])
        return word
