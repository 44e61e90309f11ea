"""What a witness says of itself where it is a switched affine layer, so that nobody has to know its kind to run it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine


@dataclass(frozen=True)
class AffineTables:
    """A layer by letter, and the vector of each state, in float64.

    Args:
        A: shape (|Σ|, H, b, b), blocks padded with zeros to the largest.
        v: shape (|Σ|, H, b).
        x: shape (n, H, b); the start state's is x₀.
        block_sizes: H sizes.
    """

    A: np.ndarray
    v: np.ndarray
    x: np.ndarray
    block_sizes: tuple[int, ...]


class AffineWitness:
    """A witness whose layer is x ↦ A_a x + v_a: `lower.witness` makes a network of any.

    Args:
        machine: the minimal machine.
    """

    machine: MooreMachine

    def tables(self) -> AffineTables:
        """The layer's numbers, as near as float64 comes to them."""
        raise NotImplementedError
