"""Products of factors I − β k kᵀ with a bound on their number and on β: DeltaNet, DeltaProduct (T7, T36, T54).

With β < 2 a factor shortens every vector that it does not fix. T54: on differences of states each letter is then a
projection plus a nilpotent map of its kernel. In coordinates in which the nilpotent maps are small, such letters are
products of factors with β ≤ 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import lcm

import numpy as np
from flint import fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import linear
from fsa2lrnn.families.channels import basis_zero_at
from fsa2lrnn.families.closure import Echelon, fractions_of
from fsa2lrnn.families.function_modules import Module, functions_module, restricted, spin
from fsa2lrnn.families.householder import HouseholderWitness
from fsa2lrnn.families.identities import Family


@dataclass(frozen=True)
class HouseholderProducts:
    """The family of layers with any v_a whose A_a are, in each head, products of factors I − β k kᵀ with |k| = 1.

    DeltaNet has one factor per letter, DeltaProduct several. With β at most 1 no factor has a negative eigenvalue.

    Args:
        factors: the largest number of factors per letter and head; None for any number.
        beta: the closed range of β: (0, h) with 1 ≤ h ≤ 2. A sigmoid reaches the ends of its range only by rounding.

    Raises `UnsupportedFormat` for other values.

    >>> HouseholderProducts(2, (0, 1)).name
    'householder(2,[0,1])'
    """

    factors: int | None = None
    beta: tuple[float | Fraction, float | Fraction] = (0, 2)

    def __post_init__(self) -> None:
        if self.factors is not None and (type(self.factors) is not int or not 0 < self.factors < 10**9):
            raise UnsupportedFormat(f"factors={self.factors!r}: pass a positive integer, or None for any number")
        try:
            low, high = (Fraction(str(end)) for end in self.beta)
        except (TypeError, ValueError, ZeroDivisionError):
            low = high = Fraction(-1)
        if low != 0 or not 1 <= high <= 2 or high.denominator >= 10**9:
            raise UnsupportedFormat(
                f"beta={self.beta!r}: pass (0, h) with 1 <= h <= 2. No theorem here covers β < 0 or β > 2, which make "
                "vectors longer; with β < 1 alone the factors neither erase nor reflect, and all states get one vector"
            )
        object.__setattr__(self, "beta", (low, high))

    @property
    def has_reflections(self) -> bool:
        """Whether β = 2 is allowed."""
        return self.beta[1] == 2

    @property
    def name(self) -> str:
        """The name in verdicts and certificates, which states both bounds."""
        return f"householder({'' if self.factors is None else f'{self.factors},'}[0,{self.beta[1]}])"

    @property
    def form(self) -> Family | None:
        """The family to which the matrices belong on differences of states; None if it forces no equations."""
        if self.factors == 1:  # symmetric
            return Family("any", "[-1,1]") if self.has_reflections else Family("commuting", "[0,1]")
        return None if self.has_reflections else Family("paracontracting")


def projections(machine: MooreMachine, functions: np.ndarray, family: str) -> HouseholderWitness | None:
    """Return a witness with β ≤ 1 by T54, or None if its construction does not apply.

    `functions`, integers (k, n), are a basis of those that vanish on the W of the family "paracontracting".
    """
    adapted = _adapted(machine.delta, functions)
    if adapted is None:
        return None
    values, levels, letters = adapted
    # The axes of `values` are function and state; row i of a letter's matrix expresses the image of function i.
    needed = list(range(len(levels)))
    for i in reversed(needed):  # drop functions that neither another function nor a pair of states needs
        rest = [j for j in needed if j != i]
        if not any(A[rest, i].any() for A in letters) and len({*map(tuple, values[rest].T)}) == machine.n_states:
            needed = rest
    letters = [A[np.ix_(needed, needed)] for A in letters]
    scale = np.ones(len(needed), object)
    # T54: scale coordinates of higher levels up until every nilpotent part is small enough to factor.
    while None in (factored := [_factors(A * scale[:, None] / scale) for A in letters]):
        scale = scale * np.array([2 ** levels[i] for i in needed], object)
    width = 1 + max([len(needed) - 1, *(i for factors in factored for key, _ in factors or () for i in key)])
    # Spare coordinates, for rows that wait to be written, are zero at every state.
    spare = np.zeros((machine.n_states, width - len(needed)), object)
    at = tuple(map(tuple, np.hstack([values[needed].T * scale, spare]).tolist()))
    keys, rates = list[tuple[tuple[int, ...], ...]](), list[tuple[Fraction, ...]]()
    for factors in factored:
        denominators = [lcm(*(x.denominator for x in key.values())) for key, _ in factors or ()]
        pairs = list(zip(factors or (), denominators, strict=True))
        keys.append(tuple(tuple(int(key.get(i, 0) * m) for i in range(width)) for (key, _), m in pairs))
        # Scaling a key by m to make it an integer vector divides its rate by m², which leaves β k kᵀ as it is.
        rates.append(tuple(rate / m**2 for (_, rate), m in pairs))
    # All functions are zero at state 0, so the shift of a letter is the vector of δ(0, a).
    shifts = tuple(at[q] for q in machine.delta[:, 0])
    return HouseholderWitness(machine, family, tuple(keys), shifts, None, at, tuple(rates))


def _adapted(delta: np.ndarray, functions: np.ndarray) -> tuple[np.ndarray, list[int], list[np.ndarray]] | None:
    """Return functions (d, n), zero at state 0, that each letter fixes or maps to functions of higher levels.

    Also returns their levels and one matrix (d, d) per letter. The nilpotent parts of letters map level i to level
    i + 1. The result is None if the projections do not commute or the levels do not end.
    """
    module = functions_module(delta)
    rows = linear.matrix(basis_zero_at(functions, 0)[:, 1:].tolist(), module.dimension)
    part = Module(restricted(module, rows) or ())
    d, one = part.dimension, linear.identity(part.dimension)
    # T54: d repetitions of a letter act as the projection onto what the letter fixes.
    powers = [letter**d for letter in part.letters]
    # Only commuting projections have a common basis in which each is diagonal with entries 0 and 1.
    if any(p * q != q * p for p, q in combinations(powers, 2)):
        return None
    spaces = [one]
    # Space i + 1 is the submodule that the nilpotent parts A_a − A_a^d generate on space i; level i is what it adds to
    # that.
    while size := spaces[-1].nrows():
        images = [spaces[-1] * (letter - power) for letter, power in zip(part.letters, powers, strict=True)]
        spaces.append(spin(part, linear.stack(images, d)).rows)
        # A space that does not shrink would never reach 0, so that the nilpotent parts have no common triangular form.
        if spaces[-1].nrows() == size:
            return None
    echelon, chosen, levels = Echelon(d, linear.PRIME), list[fmpq_mat](), list[int]()
    # From the smallest space up, the echelon form keeps of each space only what the higher levels lack.
    for level, space in reversed(list(enumerate(spaces))):
        parts = [space]
        for power in powers:  # what each letter fixes, and what it does not
            parts = [linear.row_space(part * p) for part in parts for p in (power, one - power)]
        for part in parts:
            independent = echelon.independent(linear.residues(part))
            chosen.append(linear.rows_of(part, independent))
            levels += [level] * len(independent)
    adapted = linear.primitive(linear.stack(chosen, d) * rows)
    values = np.array([[0, *map(int, row)] for row in adapted.tolist()], dtype=object)
    return values, levels, [fractions_of(letter) for letter in restricted(module, adapted) or ()]


def _factors(A: np.ndarray) -> list[tuple[dict[int, Fraction | int], Fraction]] | None:
    """Return sparse keys and rates of factors whose product is A; None if its nilpotent part is not small enough.

    For k = e − 2h with h ⊥ e, and x zero at e, I − ½ k kᵀ writes h·x at e and subtracts 2 (h·x) h from the rest. Each
    row is written to its coordinate after that is erased. If other rows still have to read this coordinate, the row is
    written to a spare one and moved later.
    """
    one, half, d = Fraction(1), Fraction(1, 2), len(A)
    erased = [i for i in range(d) if A[i, i] != 1]
    rows = {i: A[i] for i in erased if A[i].any()}
    factors, copies = list[tuple[dict[int, Fraction | int], Fraction]](), list[tuple[int, int]]()
    while rows:
        i = next((i for i in rows if not any(row[i] for row in rows.values())), None)
        if i is not None:
            # β = 1 with a unit key erases coordinate i, which no remaining row reads any more.
            factors.append(({i: 1}, one))
            erased.remove(i)
            target, h = i, rows.pop(i)
        else:
            i, h = rows.popitem()
            # The spare coordinate is moved by a factor ½ (e_i − e_spare)(e_i − e_spare)ᵀ at the end, which halves it:
            # so h is doubled.
            target, h = d + len(copies), 2 * h
            copies.append((i, target))
        if (size := h @ h) > Fraction(1, 4):  # β |k|² would be above 1
            return None
        key: dict[int, Fraction | int] = {target: 1}
        factors.append((key | {j: -2 * x for j, x in enumerate(h) if x}, half))
        # The remaining rows read the changed vector.
        rows = {j: row + h * (2 * (h @ row) / (1 - 2 * size)) for j, row in rows.items()}
    factors.extend(({i: 1}, one) for i in erased)
    for i, spare in copies:
        factors.extend([({i: 1, spare: -1}, half), ({spare: 1}, one)])
    return factors
