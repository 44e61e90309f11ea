"""Synthesis of a gate that computes a table: one conjunction of indicators per box (docs/theory.md §6).

A coordinate with values 0 … m−1 is encoded as 0/1 features: m one-hot features, or m − 1, the one-hot code without the
feature of 0 (`lanes`). The indicator of a set S of values is then affine in the features, Σ_{i∈S} f_i or
1 − Σ_{i∉S} f_i, and for J such indicators relu(Σ_j s_j − (J − 1)) is 1 if all are 1, and else 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.errors import NotExact
from fsa2lrnn.gates.cover import Box, boxes
from fsa2lrnn.gates.gate import ReluGate

LARGEST_SUM = 256  # bfloat16 holds every integer up to here
_ROWS = 65_536  # keys per batch of the check


@dataclass(frozen=True)
class Coordinate:
    """A coordinate of a gate's input with `n_values` values: one-hot, with `lanes` without the feature of value 0."""

    n_values: int
    lanes: bool = False

    @property
    def width(self) -> int:
        """The number of features."""
        return self.n_values - self.lanes


def features(keys: np.ndarray, coordinates: Sequence[Coordinate]) -> np.ndarray:
    """Return the 0/1 features of rows of values, coordinates in order: int (R, J) -> int8 (R, D).

    >>> features(np.array([[1, 2], [0, 0]]), [Coordinate(2), Coordinate(3, lanes=True)]).tolist()
    [[0, 1, 0, 1], [1, 0, 0, 0]]
    """
    parts = [
        (column[:, None] == np.arange(coordinate.lanes, coordinate.n_values))
        for column, coordinate in zip(keys.T, coordinates, strict=True)
    ]
    return np.concatenate(parts, axis=1).astype(np.int8)


def synthesise(keys: np.ndarray, targets: np.ndarray, coordinates: Sequence[Coordinate]) -> ReluGate:
    """Return a gate with few units whose output at the features of each key is its target; other inputs are free.

    The target that needs the most units is the output bias and needs none; each unit adds, in its box, the difference
    to another target. The result is checked on all keys.

    Args:
        keys: distinct rows of values, int, shape (R, J).
        targets: small integers, shape (R, E).
        coordinates: the J coordinates of the keys.

    Raises:
        NotExact: if a sum could exceed 256, beyond which bfloat16 rounds, or an output is wrong.

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
    b2 = values[default]
    others = values[[label for _, label in cover]] if cover else values[:0]
    gate = ReluGate(W1, b1, np.ascontiguousarray((others - b2).T), b2)
    _check(gate, keys, targets, coordinates)
    return gate


def _conjunction(box: Box, coordinates: Sequence[Coordinate]) -> tuple[np.ndarray, int]:
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
