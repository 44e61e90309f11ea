"""The sets that a proof by sets rests on: dataclasses of numpy arrays, as a certificate's file holds them."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Sets:
    """A set of states for each node, that is for each machine state and each choice of the last letters read.

    In head h of node (f, j) it holds the states T w, T = basis[f, h], with |w_i − centre_i| ≤ radius_i in the slow
    coordinates i, ‖w − centre‖ ≤ ball over the others, and lower ≤ d·w ≤ upper over all slow coordinates for each
    direction d. f numbers machine states with the last `frame_memory` letters, j the letters before those.

    Args:
        length: of the words that lead here.
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


@dataclass(frozen=True, eq=False)
class Tail:
    """Sets that grow evenly: after i more letters, i ≤ steps, radii and balls are those of `sets` plus i times these.

    Directions bound nothing here. With steps = None nothing grows, and the sets hold the states of all longer words.
    """

    sets: Sets
    radius: np.ndarray
    ball: np.ndarray
    steps: int | None


@dataclass(frozen=True, eq=False)
class Tube:
    """The sets along all words, or what it takes to compute them.

    Args:
        memory: letters that a node remembers; at least 1.
        frame_memory: letters that its coordinates depend on; at least 1.
        start: words of up to this length are computed one by one.
        basis: T, float64 (F, H, b, b).
        slow: bool (F, H, b), the coordinates that intervals bound.
        part: int64 (|Q|,), states of like number have their directions in common.
        directions: float64 (parts, D, H, b).
        stored: at some lengths, in order. In between the checker computes the sets itself.
        tail: what follows the last length computed so.
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
