"""Dyadic solutions of dyadic equations U z = t, near given vectors: a reduced basis and Babai's rounding (1986)."""

from __future__ import annotations

import numpy as np
from flint import fmpz_mat

_HEAVY = 1 << 40


class Coset:
    """The coset of vectors z on the grid 2^−grid with U z = t, for U (r, b) on the grid 2^−coarse.

    `is_onto` holds if such a z exists for every t on the grid 2^−(grid + coarse).

    >>> half = Coset(np.array([[0.5, 1.0]]), coarse=1, grid=3)
    >>> half.is_onto, half.nearest(np.array([0.75]), np.array([0.0, 1.0])).tolist()
    (True, [0.0, 0.75])
    """

    def __init__(self, U: np.ndarray, coarse: int, grid: int) -> None:
        r, b = U.shape
        whole = np.round(U * 2.0**coarse).astype(np.int64)
        wide = np.hstack([np.eye(b, dtype=np.int64), _HEAVY * whole.T])
        reduced = np.array([[int(entry) for entry in row] for row in fmpz_mat(wide.tolist()).lll().tolist()], object)
        images = reduced[:, b:] // _HEAVY  # U times each basis vector
        is_kernel = np.array([not any(row) for row in images])
        self._kernel = reduced[is_kernel, :b].astype(np.float64)  # (b - r, b)
        self._lifts = reduced[~is_kernel, :b].astype(np.float64)
        self._images = images[~is_kernel].astype(np.float64)
        self._q, self._r = np.linalg.qr(self._kernel.T)
        self._units = 2.0**grid, 2.0 ** (grid + coarse)
        self.is_onto = len(self._lifts) == r and bool(abs(abs(np.linalg.det(self._images)) - 1) < 0.5)

    def nearest(self, t: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return a solution near `near`: (r,), (b,) -> (b,). `t` must be on the grid, and the coset onto."""
        fine, finer = self._units
        parts = np.round(np.linalg.solve(self._images.T, np.round(t * finer)))
        particular = parts @ self._lifts
        rest = near * fine - particular
        target = self._q.T @ rest
        steps = np.zeros(len(target))
        for i in reversed(range(len(steps))):
            steps[i] = np.round((target[i] - self._r[i, i + 1 :] @ steps[i + 1 :]) / self._r[i, i])
        return (particular + steps @ self._kernel) / fine
