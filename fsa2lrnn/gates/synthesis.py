"""From a table to a gate that computes it: one AND of indicators for each box (docs/theory.md §6).

A coordinate with values 0 … m−1 is seen as 0/1 features: one-hot, m of them, or as *lanes*, the one-hot code without
the feature of 0. Whether its value lies in a set S is then an affine function of the features, Σ_{i∈S} f_i, or
1 − Σ_{i∉S} f_i, and J such indicators s_1 … s_J are all 1 just when relu(Σ_j s_j − (J − 1)) = 1, else that is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.errors import NotExact
from fsa2lrnn.gates.boxes import Box, boxes
from fsa2lrnn.gates.gate import ReluGate

LARGEST_SUM = 256  # bfloat16 holds every integer up to here
_ROWS = 65_536  # keys that are checked at a time


@dataclass(frozen=True)
class Coordinate:
    """One of the things that a gate sees: `n_values` values, one-hot, or as lanes without a feature for value 0."""

    n_values: int
    lanes: bool = False

    @property
    def width(self) -> int:
        """Number of features."""
        return self.n_values - self.lanes


def features(keys: np.ndarray, coordinates: Sequence[Coordinate]) -> np.ndarray:
    """The 0/1 features of rows of values, coordinates in order: int (R, J) -> int8 (R, D).

    >>> features(np.array([[1, 2], [0, 0]]), [Coordinate(2), Coordinate(3, lanes=True)]).tolist()
    [[0, 1, 0, 1], [1, 0, 0, 0]]
    """
    parts = [
        (column[:, None] == np.arange(coordinate.lanes, coordinate.n_values))
        for column, coordinate in zip(keys.T, coordinates, strict=True)
    ]
    return np.concatenate(parts, axis=1).astype(np.int8)


def synthesise(keys: np.ndarray, targets: np.ndarray, coordinates: Sequence[Coordinate]) -> ReluGate:
    """A gate whose value at the features of each key is its target, with few units; elsewhere it may give anything.

    The target that would take the most units is the output bias and takes none; each unit adds, in its box, the
    difference to another target. All keys are checked.

    Args:
        keys: distinct rows of values, int, shape (R, J).
        targets: small integers, shape (R, E).
        coordinates: J, what the values are.

    Raises:
        NotExact: if a sum could exceed 256, so that bfloat16 would round, or a value came out wrong.

    >>> gate = synthesise(np.array([[0], [1], [2]]), np.array([[5], [5], [7]]), [Coordinate(3)])
    >>> gate.n_units, gate(np.eye(3, dtype=int)).tolist()
    (1, [[5], [5], [7]])
    """
    values, labels = np.unique(targets, axis=0, return_inverse=True)
    found, default = boxes(keys, labels.reshape(-1))
    W1 = np.zeros((len(found), sum(coordinate.width for coordinate in coordinates)), np.int64)
    b1 = np.zeros(len(found), np.int64)
    for unit, box in enumerate(found):
        W1[unit], b1[unit] = _conjunction(box, coordinates)
    b2 = values[default]
    others = values[[label for _, label in found]] if found else values[:0]
    gate = ReluGate(W1, b1, np.ascontiguousarray((others - b2).T), b2)
    _check(gate, keys, targets, coordinates)
    return gate


def _conjunction(box: Box, coordinates: Sequence[Coordinate]) -> tuple[np.ndarray, int]:
    """The weights and the bias of a box's unit."""
    sets, _ = box
    weights: list[np.ndarray] = []
    bias = 1
    for inside, coordinate in zip(sets, coordinates, strict=True):
        w = np.zeros(coordinate.width, np.int64)
        if inside is not None:
            bias -= 1
            outside = set(range(coordinate.n_values)) - inside
            if coordinate.lanes and 0 in inside:
                bias += 1
                w[[i - 1 for i in outside]] = -1
            else:
                w[[i - coordinate.lanes for i in inside]] = 1
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
