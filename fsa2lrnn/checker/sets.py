"""The sets of a proof by sets: dataclasses of numpy arrays, as a certificate's file holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of states, one per node: per machine state and choice of the last letters read.

    In head h of node (f, j) it holds the states T w, T = basis[f, h], with |w_i − centre_i| ≤ radius_i in the slow
    coordinates i, ‖w − centre‖ ≤ ball over the others, and lower ≤ d·w ≤ upper over all slow coordinates for each
    direction d. f numbers machine states with the last `frame_memory` letters, j the letters before those.

    Args:
        length: the length of the words that lead to these states.
        alive: bool (F, J), the nodes that such words reach.
        centre, radius: (F, H, b, J).
        ball: (F, H, J).
        lower, upper: (F, D, J).
    """

    length: int
    alive: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    ball: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def at(self, rows: Any) -> Sets:
        """Return the sets of these f, one copy for each entry of an index array."""
        parts = (self.alive, self.centre, self.radius, self.ball, self.lower, self.upper)
        return Sets(self.length, *(part[rows] for part in parts))


@dataclass(frozen=True, eq=False)
class Tail:
    """Sets that grow linearly: after i ≤ steps letters, `sets` with i times `radius` and `ball` added to theirs.

    Directions bound nothing in a tail. With steps = None nothing grows, and the sets hold the states of all longer
    words.
    """

    sets: Sets
    radius: np.ndarray
    ball: np.ndarray
    steps: int | None


@dataclass(frozen=True, eq=False)
class Tube:
    """The parameters from which the checker computes the sets of states along all words.

    Args:
        memory: the number of letters that a node remembers; at least 1.
        frame_memory: the number of letters that its coordinates depend on; at least 1.
        start: words of up to this length are computed one by one.
        basis: T, float64 (F, H, b, b).
        slow: bool (F, H, b), the coordinates that intervals bound.
        part: int64 (|Q|,), the index of each state's directions.
        directions: float64 (parts, D, H, b).
        stored: sets at some lengths, in order. In between the checker computes the sets itself.
        tail: the sets of all longer words.
    """

    memory: int
    frame_memory: int
    start: int
    basis: np.ndarray
    slow: np.ndarray
    part: np.ndarray
    directions: np.ndarray
    stored: tuple[Sets, ...] = ()
    tail: tuple[Tail, ...] = ()


class Claim(NamedTuple):
    """The claim that a model is right on every word of at most `horizon` letters (None for any length) by these scans.

    `margins` has a lower bound for each length from 1. With a tail, it ends where the tail begins, and one more entry
    bounds the margins in the tail.
    """

    horizon: int | None
    margins: np.ndarray
    scans: tuple[str, ...]
    tube: Tube
