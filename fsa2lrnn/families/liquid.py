"""Represent machines by Liquid-S4, x_k = (A + diag(Bu)) x_{k−1} + Bu, where Bu occurs twice (the paper's Eq. 4).

With diagonal A this is a diagonal input-dependent layer and represents no more than such layers do (Proposition 2).
With dense A, T6 of docs/theory.md gives a sufficient condition and the weights. If neither decides, the answer is
*unknown*.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from flint import fmpq_mat, fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.families.channels import ScalarChannel
from fsa2lrnn.families.closure import fractions_of, left_kernel
from fsa2lrnn.families.family_answers import AffineTables, AffineWitness, CertifiedAnswer, Unknown, certificate_header

_EIGENVALUES = range(-2, 3)  # integers that M_a − M_b can have: its columns have 1-norm at most 2

Vector = tuple[Fraction, ...]


@dataclass(frozen=True)
class LiquidWitness(CertifiedAnswer, AffineWitness):
    """A Liquid-S4 layer with rational weights that represents the machine.

    Args:
        A: the matrix, d rows of d numbers.
        B: the vector Bu of each letter, d numbers.
        vectors: the vector of each state, d numbers; that of the start is x₀.
    """

    answer: ClassVar[str] = "yes"
    A: tuple[Vector, ...]
    B: tuple[Vector, ...]
    vectors: tuple[Vector, ...]

    @property
    def dimension(self) -> int:
        return len(self.A)

    @property
    def is_exact(self) -> bool:
        """Whether every step is exact in float64: all weights are dyadic, and the sums of a step fit 53 bits."""
        numbers = [x for rows in (self.A, self.B, self.vectors) for row in rows for x in row]
        if not numbers or any(x.denominator & (x.denominator - 1) for x in numbers):
            return not numbers
        # Products are multiples of 2^-2e, and no partial sum of A x + diag(B) x + B is larger than the bound.
        unit = Fraction(1, max(x.denominator for x in numbers) ** 2)
        shift, reach = (max(abs(x) for row in rows for x in row) for rows in (self.B, self.vectors))
        bound = (max(sum(map(abs, row)) for row in self.A) + shift) * reach + shift
        return bound < 2**53 * unit

    def tables(self) -> AffineTables:
        """Return the tables of one block in float64, with A(a) = A + diag(B_a) and v(a) = B_a."""
        parts = (self.A, self.B, self.vectors)
        A, B, x = (np.array([[float(c) for c in row] for row in rows]) for rows in parts)
        d, n_letters = self.dimension, len(self.machine.alphabet)
        transitions = (A + np.eye(d) * B[:, None, :]).reshape(n_letters, 1, d, d)
        return AffineTables(transitions, B[:, None], x[:, None], (d,))

    def explain(self) -> str:
        kind = "diagonal" if self.family == "liquid-s4-diagonal" else "dense"
        return f"A {kind} A of {self.dimension} dimensions with rational weights, Bu tied."

    def to_json(self) -> dict[str, Any]:
        parts = {"A": self.A, "B": self.B, "vectors": self.vectors}
        tables = {name: [[str(x) for x in row] for row in rows] for name, rows in parts.items()}
        return {**certificate_header(self.machine, self.family, "representable"), **tables}


def tie_channels(channels: tuple[ScalarChannel, ...], machine: MooreMachine) -> LiquidWitness | Unknown:
    """Return a diagonal Liquid-S4 layer with the entries of a diagonal layer, or `Unknown` if an entry cannot be tied.

    An entry f with multiplier χ and shift v, moved to f + t, has the shift v(a) + t (1 − χ(a)). It is tied if this
    equals χ(a) − α for some α. So v must be a combination c₁ χ + c₀ over the letters; then t = c₁ − 1 and
    α = 1 − c₁ − c₀.
    """
    family = "liquid-s4-diagonal"
    tied: list[tuple[Fraction, list[Fraction], list[Fraction]]] = []
    for channel in channels:
        if channel.order > 2:
            reason = (
                "the diagonal witness has rotations, and whether a channel of another field can be tied was not decided"
            )
            return Unknown(machine, family, reason)
        chi = [Fraction(int(channel.multiplier(a).real)) for a in range(len(machine.alphabet))]
        v = [Fraction(shift[0]) for shift in channel.shifts]
        line = _line_through(chi, v)
        if line is None:
            reason = (
                "a channel of the diagonal witness has letters of one multiplier and unlike shifts: it cannot be tied"
            )
            return Unknown(machine, family, reason)
        # v + t (1 − χ) = (c₁ − t) χ + (c₀ + t) has to equal χ − α, which t = c₁ − 1 and α = 1 − c₁ − c₀ achieve.
        c1, c0 = line
        alpha = 1 - c1 - c0
        tied.append((alpha, [x - alpha for x in chi], [value[0] + c1 - 1 for value in channel.values]))
    if not tied:  # a single state needs no entry, and a layer needs one
        zeros = [Fraction(0)] * len(machine.alphabet)
        tied.append((Fraction(0), zeros, [Fraction(0)]))
    d = len(tied)
    return LiquidWitness(
        machine,
        family,
        tuple(tuple(tied[i][0] if i == j else Fraction(0) for j in range(d)) for i in range(d)),
        tuple(tuple(channel[1][a] for channel in tied) for a in range(len(machine.alphabet))),
        tuple(tuple(Fraction(channel[2][q]) for channel in tied) for q in range(machine.n_states)),
    )


def dense_liquid(machine: MooreMachine) -> LiquidWitness | Unknown:
    """Return the Liquid-S4 layer of T6 with a dense matrix A, or `Unknown` if its hypotheses do not hold.

    If the differences M_a − M_b of the letters' one-hot matrices commute and are diagonalisable, with eigenbasis P:

    N_a = P⁻¹ M_a P,  Bu = N_a 1 − 1,  A = N_{a₀} − diag(N_{a₀} 1 − 1),  x_q = P⁻¹ e_q − 1.
    """
    family, n = "liquid-s4", machine.n_states
    letters = [_matrix(row) for row in machine.delta]
    differences = [matrix - letters[0] for matrix in letters[1:]]
    if any((x @ y != y @ x).any() for i, x in enumerate(differences) for y in differences[:i]):
        return Unknown(machine, family, "the differences M_a − M_b do not commute, and T6 says nothing then")
    basis = _eigenbasis(differences, n)
    if basis is None:
        reason = "the differences M_a − M_b have no rational eigenbasis, and T6 is used over the rationals"
        return Unknown(machine, family, reason)
    P = fmpq_mat(fmpz_mat(basis.T.tolist()))
    inverse = P.inv()
    N = [fractions_of(inverse * fmpq_mat(fmpz_mat(matrix.tolist())) * P) for matrix in letters]
    shifts = [[sum(row, Fraction(-1)) for row in matrix] for matrix in N]
    A = [[x - (shifts[0][i] if i == j else Fraction(0)) for j, x in enumerate(row)] for i, row in enumerate(N[0])]
    columns = fractions_of(inverse)
    vectors = [[columns[i][q] - 1 for i in range(n)] for q in range(n)]
    return LiquidWitness(machine, family, *(tuple(map(tuple, rows)) for rows in (A, shifts, vectors)))


def _matrix(row: np.ndarray) -> np.ndarray:
    matrix = np.zeros((len(row), len(row)), np.int64)
    matrix[row, np.arange(len(row))] = 1
    return matrix


def _eigenbasis(differences: list[np.ndarray], n: int) -> np.ndarray | None:
    """Return a basis (n, n) of common eigenvectors with integer eigenvalues, or None if these do not span."""
    # Each space is a matrix of rows; the eigenspaces of one matrix are split by the next, since they commute.
    spaces = [np.eye(n, dtype=int).astype(object)]
    for matrix in differences:
        parts: list[np.ndarray] = []
        for space in spaces:
            image = space @ matrix.T.astype(object)
            for value in _EIGENVALUES:
                # Rows of the space are column vectors of the matrix: x with M x = value · x.
                combinations = left_kernel(image - value * space)
                if len(combinations):
                    parts.append(combinations @ space)
        if sum(map(len, parts)) < n:
            return None
        spaces = parts
    return np.concatenate(spaces)


def _line_through(chi: list[Fraction], v: list[Fraction]) -> tuple[Fraction, Fraction] | None:
    other = next((i for i, x in enumerate(chi) if x != chi[0]), None)
    c1 = Fraction(0) if other is None else (v[other] - v[0]) / (chi[other] - chi[0])
    c0 = v[0] - c1 * chi[0]
    return (c1, c0) if all(y == c1 * x + c0 for x, y in zip(chi, v, strict=True)) else None
