"""Interfaces of witnesses that are switched affine layers: their numeric tables, independent of the kind of witness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine


@dataclass(frozen=True)
class AffineTables:
    """The matrices and shifts of a layer per letter, and the vector of each state, in float64.

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
    """A witness whose layer is x ↦ A_a x + v_a: `lower.witness` builds a network from it.

    `machine`: the minimal machine.
    """

    machine: MooreMachine

    def tables(self) -> AffineTables:
        """Return the layer's tables, rounded to float64."""
        raise NotImplementedError

    @property
    def is_exact(self) -> bool:
        """Whether all entries are integers, so that floats compute exactly as long as they hold the integers."""
        tables = self.tables()
        return not ((tables.A % 1).any() or (tables.v % 1).any() or (tables.x % 1).any())


@dataclass(frozen=True)
class HeadTables:
    """The keys per letter and head, with heads padded with zeros to the largest.

    Args:
        keys: of the factors I − k kᵀ, the first applied first, zero for none: (|Σ|, H, m, b).
        shifts: what is added after them: (|Σ|, H, b).
        vectors: one per state: (n, H, b).
    """

    keys: np.ndarray
    shifts: np.ndarray
    vectors: np.ndarray


class HeadsWitness:
    """A witness whose layer has heads of Householder factors, from which `lower.witness` builds a network.

    `machine`: the minimal machine.
    """

    machine: MooreMachine

    def tables(self) -> HeadTables:
        """Return the keys, shifts and vectors, rounded to float64."""
        raise NotImplementedError
