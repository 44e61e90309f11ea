"""Gates that look tables up for finitely many inputs: one hidden unit per input separates it from all others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.errors import NotExpressible

_BITS = (4, 6, 9, 14)  # of the entries of W1
_STEPS = 300


class LookUp(NamedTuple):
    """Hidden units relu(W1 u + b1) for N points: unit i is `units[i]`, a power of two, at point i and 0 at all others.

    Products with W2 are then exact; for points of few binary places the sums are exact as well.
    """

    W1: np.ndarray
    b1: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray) -> LookUp:
        """Return the units for points (N, d); raise `NotExpressible` if one lies in the hull of others, or nearly.

        >>> at = LookUp.of(np.array([[0.0, 0.5], [1.0, 0.0]])).gate(np.array([[3.0], [5.0]]), torch.float64)
        >>> ((torch.tensor([0.0, 0.5]).double() @ at["W1"].T + at["b1"]).relu() @ at["W2"].T).tolist()
        [3.0]
        """
        W1, gaps = _directions(points)
        units = 2.0 ** np.floor(np.log2(gaps))
        return cls(W1, units - (W1 * points).sum(1), units)

    def gate(self, table: np.ndarray, dtype: torch.dtype) -> dict[str, Tensor]:
        """Return weights of a gate that maps point i to row i of a table (N, …)."""
        W2 = (table.reshape(len(table), -1) / self.units[:, None]).T
        return {k: torch.from_numpy(part).to(dtype) for k, part in (("W1", self.W1), ("b1", self.b1), ("W2", W2))}


def _directions(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return integer directions (N, d) in which each point lies beyond all others, and the distances (N,)."""
    centred = points - points.mean(0)
    spread = centred.T @ centred / len(points)
    ridge = max(float(np.trace(spread)) / len(spread), 1e-300) * 1e-3
    W = centred @ np.linalg.inv(spread + ridge * np.eye(len(spread)))
    behind = np.arange(len(points))
    for bits in _BITS:
        for _ in range(_STEPS):
            whole = np.round(W / np.maximum(np.abs(W).max(1, keepdims=True), 1e-300) * (2**bits - 1))
            products = whole @ points.T
            own = products.diagonal().copy()
            np.fill_diagonal(products, -np.inf)
            gaps = own - products.max(1) if len(points) > 1 else np.ones(1)
            behind = np.flatnonzero(gaps <= 0)
            if not len(behind):
                return whole, gaps
            nearest = products[behind].argmax(1)  # a step of the perceptron
            step = points[behind] - points[nearest]
            size = np.linalg.norm(step, axis=1, keepdims=True)
            W[behind] += 0.3 * np.linalg.norm(W[behind], axis=1, keepdims=True) * step / np.maximum(size, 1e-300)
    raise NotExpressible(
        f"{len(behind)} of the {len(points)} inputs of a layer lie among the others, so that no hidden unit tells them "
        "apart: the layers below have too few directions"
    )
