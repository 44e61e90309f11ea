"""Integer gates, the part of a layer that reads the token and lower layers, and their synthesis from tables.

y = W₂ relu(W₁ u + b₁) + b₂                                              (the paper's Eq. 5, docs/theory.md §6)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fsa2lrnn.compile.cover import Box, boxes
from fsa2lrnn.errors import InvalidMachine, NotExact

_EXACT = 2**53  # up to here float64 holds every integer


@dataclass(frozen=True, eq=False)
class ReluGate:
    """An integer gate y = W₂ relu(W₁ u + b₁) + b₂ with d hidden units; d may be 0.

    Args:
        W1: int, shape (d, D).
        b1: int, shape (d,).
        W2: int, shape (E, d).
        b2: int, shape (E,).

    Raises `InvalidMachine` if the shapes do not agree, or an entry is not an integer.

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
        """Return y exactly: int (…, D) -> int64 (…, E). Raises `NotExact` if sums could reach 2⁵³."""
        self.check_exact(int(np.abs(u).max(initial=0)))
        W1, b1, _, _ = self.weights
        return self.finish(u.astype(np.float64) @ W1.T + b1).astype(np.int64)

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """W₁, b₁, W₂, b₂ in float64, in which matrix products of integers are fast and exact below 2⁵³."""
        W1, b1, W2, b2 = (part.astype(np.float64) for part in (self.W1, self.b1, self.W2, self.b2))
        return W1, b1, W2, b2

    def finish(self, h: np.ndarray) -> np.ndarray:
        """Return the output y = W₂ relu(h) + b₂ for hidden units h = W₁ u + b₁: float64 (…, d) -> (…, E)."""
        _, _, W2, b2 = self.weights
        return np.maximum(h, 0) @ W2.T + b2

    def check_exact(self, largest: int) -> None:
        """Raise `NotExact` unless all sums stay below 2⁵³ for inputs of absolute value at most `largest`."""
        slope, offset = self._growth
        if (bound := slope * largest + offset) >= _EXACT:
            raise NotExact(f"inputs up to {largest} make sums of up to {bound:.3g} in a gate: float64 is exact to 2^53")

    @cached_property
    def _growth(self) -> tuple[float, float]:
        W1, b1, W2, b2 = (np.abs(part) for part in self.weights)
        # A hidden unit is at most slope·largest + offset; the second matrix adds up these bounds with absolute
        # weights.
        slope, offset = W1.sum(1), b1
        return (
            float(max(slope.max(initial=0), (W2 @ slope).max(initial=0))),
            float(max(offset.max(initial=0), (W2 @ offset + b2).max(initial=0))),
        )

    def largest_sum(self, u: np.ndarray) -> int:
        """Return a bound on the absolute value of partial sums, in any order, on inputs u: int (…, D) -> int.

        >>> gate = ReluGate(np.array([[1, -1]]), np.array([-1]), np.array([[2]]), np.array([3]))
        >>> gate.largest_sum(np.array([[1, 1]]))
        3
        """
        W1, b1, W2, b2 = self.weights
        inputs = u.astype(np.float64)
        first = np.abs(inputs) @ np.abs(W1).T + np.abs(b1)
        # The actual hidden values, not their bounds: units that are off add nothing.
        second = np.maximum(inputs @ W1.T + b1, 0) @ np.abs(W2).T + np.abs(b2)
        return int(max(first.max(initial=0), second.max(initial=0)))


LARGEST_SUM = 256  # bfloat16 holds every integer up to here
_ROWS = 65_536  # keys per batch of the check


@dataclass(frozen=True)
class Coordinate:
    """A coordinate of a gate's input, one-hot in `n_values` features; `omits_zero` leaves out that of value 0."""

    n_values: int
    omits_zero: bool = False

    @property
    def width(self) -> int:
        """The number of features."""
        return self.n_values - self.omits_zero


def features(keys: np.ndarray, coordinates: Sequence[Coordinate]) -> np.ndarray:
    """Return the 0/1 features of rows of J coordinates, concatenated: int (R, J) -> int8 (R, D).

    >>> features(np.array([[1, 2], [0, 0]]), [Coordinate(2), Coordinate(3, omits_zero=True)]).tolist()
    [[0, 1, 0, 1], [1, 0, 0, 0]]
    """
    parts = [
        (column[:, None] == np.arange(coordinate.omits_zero, coordinate.n_values))
        for column, coordinate in zip(keys.T, coordinates, strict=True)
    ]
    return np.concatenate(parts, axis=1).astype(np.int8)


def synthesise(keys: np.ndarray, targets: np.ndarray, coordinates: Sequence[Coordinate]) -> ReluGate:
    """Return a gate with few units whose output at the features of each key is its target (docs/theory.md §6).

    A coordinate with values 0 … m−1 is encoded as m one-hot features, or m − 1 without the feature of 0. The indicator
    of a set S of values is affine in them, Σ_{i∈S} f_i or 1 − Σ_{i∉S} f_i. For J such indicators s_j, the unit
    relu(Σ_j s_j − (J − 1)) is 1 if all are 1, else 0: one unit per box of `boxes`. The target that needs the most boxes
    is the output bias; each unit adds the difference between its target and this one. Other inputs may have any output.

    Args:
        keys: distinct rows of values, int, shape (R, J), of the J coordinates.
        targets: small integers, shape (R, E).

    Raises:
        InvalidMachine: if a key occurs twice.
        NotExact: if a sum could exceed 256, beyond which bfloat16 rounds, or the final check finds a wrong output.

    >>> gate = synthesise(np.array([[0], [1], [2]]), np.array([[5], [5], [7]]), [Coordinate(3)])
    >>> gate.n_units, gate(np.eye(3, dtype=int)).tolist()
    (1, [[5], [5], [7]])
    """
    values, labels = np.unique(targets, axis=0, return_inverse=True)
    cover, default = boxes(keys, labels.reshape(-1))
    W1 = np.zeros((len(cover), sum(coordinate.width for coordinate in coordinates)), np.int64)
    b1 = np.zeros(len(cover), np.int64)
    for unit, box in enumerate(cover):
        W1[unit], b1[unit] = _conjunction(box, coordinates)
    # T19 (a): the bias gives the default target, and a unit adds what its box's target differs by.
    b2 = values[default]
    others = values[[label for _, label in cover]] if cover else values[:0]
    gate = ReluGate(W1, b1, np.ascontiguousarray((others - b2).T), b2)
    _check(gate, keys, targets, coordinates)
    return gate


def _conjunction(box: Box, coordinates: Sequence[Coordinate]) -> tuple[np.ndarray, int]:
    """Return weights and bias with relu(w·x + bias) = 1 inside a box of one-hot coordinates, and 0 outside.

    Each bounded coordinate adds its indicator minus 1 to the sum 1, so the sum is 1 only if all hold, otherwise at most
    0. A coordinate that omits the unit of 0 counts the values outside its set instead if 0 lies inside.
    """
    sets, _ = box
    weights: list[np.ndarray] = []
    bias = 1
    for inside, coordinate in zip(sets, coordinates, strict=True):
        w = np.zeros(coordinate.width, np.int64)
        if inside is not None:
            bias -= 1
            outside = set(range(coordinate.n_values)) - inside
            if coordinate.omits_zero and 0 in inside:
                bias += 1
                # [value ∈ S] = 1 − Σ f_i over the values outside; 0, which has no feature, lies inside.
                w[[i - 1 for i in outside]] = -1
            else:
                w[[i - coordinate.omits_zero for i in inside]] = 1
        weights.append(w)
    return np.concatenate(weights), bias


def _check(gate: ReluGate, keys: np.ndarray, targets: np.ndarray, coordinates: Sequence[Coordinate]) -> None:
    for start in range(0, len(keys), _ROWS):
        rows = slice(start, start + _ROWS)
        u = features(keys[rows], coordinates)
        if (wrong := (gate(u) != targets[rows]).any(1)).any():
            raise NotExact(f"a synthesised gate gives a wrong value for key {keys[rows][wrong][0].tolist()}")
        if (largest := gate.largest_sum(u)) > LARGEST_SUM:
            raise NotExact(f"a gate's sums reach {largest}, but bfloat16 holds all integers only up to {LARGEST_SUM}")
