"""Gates Linear–ReLU–Linear over the integers: the part of a layer that reads the token and lower layers.

y = W₂ relu(W₁ u + b₁) + b₂                                                 (the paper's Eq. 5, docs/theory.md §6)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fsa2lrnn.errors import InvalidMachine, NotExact

_EXACT = 2**53  # up to here float64 holds every integer


@dataclass(frozen=True, eq=False)
class ReluGate:
    """y = W₂ relu(W₁ u + b₁) + b₂ with integers; d, the number of hidden units, may be 0.

    Args:
        W1: int, shape (d, D).
        b1: int, shape (d,).
        W2: int, shape (E, d).
        b2: int, shape (E,).

    Raises:
        InvalidMachine: if the shapes do not agree, or an entry is not an integer.

    >>> conjunction = ReluGate(np.array([[1, 1]]), np.array([-1]), np.array([[5]]), np.array([2]))
    >>> conjunction(np.array([[0, 1], [1, 1]])).tolist()
    [[2], [7]]
    """

    W1: np.ndarray
    b1: np.ndarray
    W2: np.ndarray
    b2: np.ndarray

    def __post_init__(self) -> None:
        parts = {"W1": self.W1, "b1": self.b1, "W2": self.W2, "b2": self.b2}
        d, width_out = len(self.W1), len(self.W2)
        if self.W1.ndim != 2 or [part.shape for part in (self.b1, self.W2, self.b2)] != [
            (d,),
            (width_out, d),
            (width_out,),
        ]:
            shapes = ", ".join(f"{name} {part.shape}" for name, part in parts.items())
            raise InvalidMachine(f"the shapes of a gate do not fit: {shapes} should be (d, D), (d,), (E, d), (E,)")
        for name, part in parts.items():
            if not np.issubdtype(part.dtype, np.integer):
                raise InvalidMachine(f"{name} of a gate has dtype {part.dtype}: give integers")
            part.flags.writeable = False

    @property
    def width_in(self) -> int:
        """D, the width of the input."""
        return self.W1.shape[1]

    @property
    def width_out(self) -> int:
        """E, the width of the output."""
        return len(self.W2)

    @property
    def n_units(self) -> int:
        """d, the number of hidden units."""
        return len(self.W1)

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Return y exactly: int (…, D) -> int64 (…, E). Raises `NotExact` if sums could exceed 2⁵³."""
        self.check_exact(int(np.abs(u).max(initial=0)))
        W1, b1, _, _ = self.weights
        return self.finish(u.astype(np.float64) @ W1.T + b1).astype(np.int64)

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """W₁, b₁, W₂, b₂ in float64, in which matrix products of integers are fast and exact below 2⁵³."""
        W1, b1, W2, b2 = (part.astype(np.float64) for part in (self.W1, self.b1, self.W2, self.b2))
        return W1, b1, W2, b2

    def finish(self, h: np.ndarray) -> np.ndarray:
        """Return y from W₁ u + b₁, float64: (…, d) -> (…, E)."""
        _, _, W2, b2 = self.weights
        return np.maximum(h, 0) @ W2.T + b2

    def check_exact(self, largest: int) -> None:
        """Raise `NotExact` unless all sums stay below 2⁵³ for inputs whose entries are at most `largest`."""
        slope, offset = self._growth
        if (bound := slope * largest + offset) >= _EXACT:
            raise NotExact(f"inputs up to {largest} make sums of up to {bound:.3g} in a gate: float64 is exact to 2^53")

    @cached_property
    def _growth(self) -> tuple[float, float]:
        W1, b1, W2, b2 = (np.abs(part) for part in self.weights)
        slope, offset = W1.sum(1), b1
        return (
            float(max(slope.max(initial=0), (W2 @ slope).max(initial=0))),
            float(max(offset.max(initial=0), (W2 @ offset + b2).max(initial=0))),
        )

    def largest_sum(self, u: np.ndarray) -> int:
        """Return the largest absolute value that a partial sum in any order can reach: int (…, D) -> int.

        >>> gate = ReluGate(np.array([[1, -1]]), np.array([-1]), np.array([[2]]), np.array([3]))
        >>> gate.largest_sum(np.array([[1, 1]]))
        3
        """
        W1, b1, W2, b2 = self.weights
        inputs = u.astype(np.float64)
        first = np.abs(inputs) @ np.abs(W1).T + np.abs(b1)
        second = np.maximum(inputs @ W1.T + b1, 0) @ np.abs(W2).T + np.abs(b2)
        return int(max(first.max(initial=0), second.max(initial=0)))
