"""Answer whether real blocks of bounded size, or boundedly many Householder factors, represent a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import NotExact
from fsa2lrnn.families.block_sizes import StateBlock, minimal_block
from fsa2lrnn.families.block_sizes.factor_bounds import FactorBounds, factor_bounds
from fsa2lrnn.families.family_answers import (
    AffineTables,
    AffineWitness,
    CertifiedAnswer,
    HeadsWitness,
    HeadTables,
    Unknown,
    certificate_header,
)

_BUDGET = 20.0  # seconds for each field


@dataclass(frozen=True)
class RealBlockWitness(CertifiedAnswer, AffineWitness):
    """A realisation by real blocks of bounded size, with exact entries: rational, or of a number field.

    Args:
        blocks: the blocks; together they separate all states.
    """

    answer: ClassVar[str] = "yes"
    blocks: tuple[StateBlock, ...]

    @property
    def dimension(self) -> int:
        return sum(block.real_size for block in self.blocks)

    @property
    def is_exact(self) -> bool:
        """Whether all entries are integers, so that all operations are exact while they fit in floating point."""
        return all(block.is_rational for block in self.blocks)

    def tables(self) -> AffineTables:
        """Return the tables of the blocks in float64, b their largest size; irrational numbers are rounded."""
        n_letters, n = len(self.machine.alphabet), self.machine.n_states
        sizes = tuple(block.real_size for block in self.blocks)
        b = max(sizes)
        # The axes are letter, block, row and column; entries beyond the size of a block are zero and stay zero.
        A, v = np.zeros((n_letters, len(sizes), b, b)), np.zeros((n_letters, len(sizes), b))
        x = np.zeros((n, len(sizes), b))
        for h, (k, block) in enumerate(zip(sizes, self.blocks, strict=True)):
            functions, A[:, h, :k, :k], v[:, h, :k] = block.rounded()
            x[:, h, :k] = functions.T
        return AffineTables(A, v, x, sizes)

    def explain(self) -> str:
        numbers = "integers" if self.is_exact else "real numbers, which floats round"
        return f"One layer of blocks of sizes {', '.join(str(block.real_size) for block in self.blocks)}, of {numbers}."

    def to_json(self) -> dict[str, Any]:
        header = certificate_header(self.machine, self.family, "representable")
        return {**header, "field": "R", "blocks": [block.to_json() for block in self.blocks]}


@dataclass(frozen=True)
class BoundImpossibility(CertifiedAnswer):
    """A certificate that no layer of blocks of this size, or of this number of factors, represents the machine.

    Args:
        reason: a sentence that states the necessary size or number.
        certificate: the certificate for `recheck`, of the largest size or number that does not suffice.
    """

    answer: ClassVar[str] = "no"
    reason: str
    certificate: dict[str, Any]

    def explain(self) -> str:
        return self.reason

    def to_json(self) -> dict[str, Any]:
        return self.certificate


@dataclass(frozen=True)
class FactorHeadsWitness(CertifiedAnswer, HeadsWitness):
    """A realisation by heads with a bounded number of Householder factors per letter (T36 (c)).

    Args:
        bounds: the bounds on the number of factors, with the functions of the heads.
    """

    answer: ClassVar[str] = "yes"
    bounds: FactorBounds

    @property
    def dimension(self) -> int:
        return sum(head.real_size for head in self.bounds.heads)

    def tables(self) -> HeadTables:
        return head_tables(self.machine, self.bounds.heads, max(1, self.bounds.upper or 0))

    def explain(self) -> str:
        sizes = ", ".join(str(head.real_size) for head in self.bounds.heads)
        return f"{self.bounds.upper} Householder factors per letter at most, in heads of {sizes} dimensions."

    def to_json(self) -> dict[str, Any]:
        return {**self.bounds.to_json(), "family": self.family}


def real_blocks(machine: MooreMachine, family: str, size: int) -> CertifiedAnswer | Unknown:
    """Decide whether one layer of real blocks of at most `size` represents a minimal machine."""
    # Rational blocks are real, so a lower bound over the reals excludes both.
    real = minimal_block(machine, "R", _BUDGET)
    if size < real.lower:
        assert real.impossible is not None
        least = f"at least {real.lower}" if real.value is None else str(real.lower)
        reason = f"Real blocks must have size {least}: smaller ones leave two states with one vector."
        return BoundImpossibility(machine, family, reason, real.impossible)
    # Rational blocks are preferred: their entries are integers, which floats can hold exactly.
    rational = minimal_block(machine, "Q", _BUDGET)
    for answer in (rational, real):
        if size >= answer.upper:
            return RealBlockWitness(machine, family, answer.blocks)
    return Unknown(machine, family, f"{real.explain()}; several layers of smaller blocks may do it")


def householder_heads(
    machine: MooreMachine, family: str, most: int | None, reason: str, budget: float | Deadline
) -> CertifiedAnswer | Unknown:
    """Decide by T36 whether heads of at most `most` factors per letter represent a minimal machine.

    `most` is None for any number of factors. The text of an `Unknown` begins with `reason`.
    """
    bounds = factor_bounds(machine, budget)
    # T58: equations between contractions merge two states, whatever the number of factors is.
    if bounds.refutation is not None:
        return replace(bounds.refutation, family=family)
    assert bounds.lower is not None
    if most is not None and most < bounds.lower:
        assert bounds.impossible is not None
        needed = f"A letter needs at least {bounds.lower} factors: fewer leave two states with one vector."
        return BoundImpossibility(machine, family, needed, bounds.impossible)
    if most is not None and bounds.heads and bounds.upper is not None and bounds.upper <= most:
        return FactorHeadsWitness(machine, family, bounds)
    return Unknown(machine, family, f"{reason}; at least {max(bounds.lower, 1)} factors, and a cascade may do it")


_STILL = 1e-9  # the largest distance by which rounding moves a fixed vector


def head_tables(machine: MooreMachine, heads: Sequence[StateBlock], m: int) -> HeadTables:
    """Return heads of at most m factors per letter and head, for letters that are permutations and constants (T36 (c)).

    A permutation keeps the mean and the sum of squares of a function. In a basis of functions of mean 0 that is
    orthonormal, up to a common factor, its matrix is therefore orthogonal and its shift 0. Raises `NotExact` if
    rounding makes more than m factors necessary.
    """
    n_letters, b = len(machine.alphabet), max(head.real_size for head in heads)
    # The axes are letter, head, factor and coordinate. A factor is I − k kᵀ: the key 0 is the identity,
    # a key of norm 1 a projection, and one of norm √2 a reflection.
    keys = np.zeros((n_letters, len(heads), m, b))
    shifts, vectors = np.zeros((n_letters, len(heads), b)), np.zeros((machine.n_states, len(heads), b))
    for h, head in enumerate(heads):
        functions, size = head.rounded()[0], head.real_size
        centred = functions - functions.mean(axis=1, keepdims=True)
        # The inverse of the Cholesky factor of the Gram matrix turns the rows into orthonormal ones.
        x = np.linalg.solve(np.linalg.cholesky(centred @ centred.T), centred)  # x xᵀ = I
        x *= np.sqrt(machine.n_states)  # vectors of size about 1
        vectors[:, h, :size] = x.T
        for a, row in enumerate(machine.delta):
            if len(np.unique(row)) == 1:
                # A constant erases every axis by a projection and adds the vector of its state.
                found = np.eye(size)
                shifts[a, h, :size] = x[:, row[0]]
            else:
                # Since x xᵀ = n I, the matrix B with B x = x[:, δ_a] is x[:, δ_a] xᵀ / n.
                found = np.sqrt(2) * reflections(x[:, row] @ x.T / machine.n_states)
            if len(found) > m:
                raise NotExact(f"a head of {size} dimensions takes {len(found)} factors, not {m}, after rounding")
            keys[a, h, : len(found), :size] = found
    return HeadTables(keys, shifts, vectors)


def reflections(A: np.ndarray) -> np.ndarray:
    """Return rank(A − I) unit vectors k with A = ∏ (I − 2 k kᵀ), in order of application: A orthogonal (b, b).

    Each reflection exchanges A x and x for a vector x that A moves, and fixes all vectors that A fixes (T36 (c)).

    >>> reflections(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3).tolist()
    [[-0.707, 0.707]]
    """
    b, keys = len(A), list[np.ndarray]()
    # Each round lowers rank(A − I) by one, so the loop needs at most b rounds; `moved[j]` is |A e_j − e_j|.
    while (moved := np.linalg.norm(A - np.eye(b), axis=0)).max() > _STILL and len(keys) < b:
        # The axis that moves most gives the key with the least relative rounding error.
        x = np.eye(b)[moved.argmax()]
        k = (A @ x - x) / moved.max()
        keys.append(k)
        # The reflection acts after A, exchanges A x and x, and so fixes x from now on.
        A = A - 2 * np.outer(k, k @ A)
    # From R_r ⋯ R_1 A = I follows A = R_1 ⋯ R_r, so that the key found last is applied first.
    return np.array(keys[::-1]).reshape(-1, b)
