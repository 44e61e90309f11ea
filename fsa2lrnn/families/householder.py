"""Products of Householder-like factors I − β k kᵀ, as in DeltaNet (one a letter) and DeltaProduct (n_h) (T7).

A transposition of x and y is I − k kᵀ with k = e_x − e_y: a reflection, β‖k‖² = 2. A permutation needs rank(P − I) =
n − #cycles of them and no fewer. A reset erases every direction, ∏ (I − e_i e_iᵀ) = 0, and writes v = e_q: n factors.
All entries are integers, so the products are exact in every floating-point format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.families.recheck import recheck
from fsa2lrnn.families.verdicts import Unknown, certificate_header


@dataclass(frozen=True)
class HouseholderWitness:
    """The keys of each letter's factors, all with β = 1, first applied first, and what is written after them.

    Args:
        machine: the minimal machine, its states at the unit vectors: x_q = e_q.
        family: "householder".
        keys: for each letter a list of integer vectors of length n.
        shifts: for each letter an integer vector: zero, or e_q for a reset to q.
    """

    answer: ClassVar[str] = "yes"
    machine: MooreMachine
    family: str
    keys: tuple[tuple[tuple[int, ...], ...], ...]
    shifts: tuple[tuple[int, ...], ...]

    @property
    def dimension(self) -> int:
        """n, one dimension a state."""
        return self.machine.n_states

    @property
    def n_factors(self) -> int:
        """n_h, the most factors that a letter needs."""
        return max(len(keys) for keys in self.keys)

    def check(self) -> str:
        """Multiply the factors out exactly with `recheck`. Raises `recheck.Rejected` if the witness is wrong."""
        return recheck(self.to_json())

    def explain(self) -> str:
        """The cost, in a sentence."""
        return f"{self.n_factors} Householder factors a letter at most, in {self.dimension} dimensions."

    def to_json(self) -> dict[str, Any]:
        """A certificate that `recheck` accepts."""
        return {
            **certificate_header(self.machine, self.family, "representable"),
            "keys": [[list(key) for key in keys] for keys in self.keys],
            "shifts": [list(shift) for shift in self.shifts],
        }


def householder(machine: MooreMachine) -> HouseholderWitness | Unknown:
    """Factors for a machine whose letters are permutations and resets.

    For any other letter the linear part would have two equal columns without being zero, which a product with a full
    reset is not; other coordinates than one-hot might do it, so the answer is unknown.
    """
    n = machine.n_states
    keys: list[tuple[tuple[int, ...], ...]] = []
    shifts: list[tuple[int, ...]] = []
    for letter, row in zip(machine.alphabet, machine.delta, strict=True):
        if len(np.unique(row)) == n:
            keys.append(tuple(_difference(n, x, y) for x, y in transpositions(row)))
            shifts.append((0,) * n)
        elif len(np.unique(row)) == 1:
            keys.append(tuple(_unit(n, q) for q in range(n)))
            shifts.append(_unit(n, int(row[0])))
        else:
            reason = f"letter {letter!r} is neither a permutation nor a reset; a cascade may still do it"
            return Unknown(machine, "householder", reason)
    return HouseholderWitness(machine, "householder", tuple(keys), tuple(shifts))


def transpositions(permutation: np.ndarray) -> list[tuple[int, int]]:
    """n − #cycles transpositions whose product, the first applied first, is the permutation.

    >>> transpositions(np.array([1, 2, 0, 3]))
    [(0, 1), (0, 2)]
    """
    found: list[tuple[int, int]] = []
    seen: set[int] = set()
    for q in range(len(permutation)):
        cycle: list[int] = []
        while q not in seen:
            seen.add(q)
            cycle.append(q)
            q = int(permutation[q])
        found += [(cycle[0], other) for other in cycle[1:]]
    return found


def _unit(n: int, q: int) -> tuple[int, ...]:
    return tuple(int(i == q) for i in range(n))


def _difference(n: int, x: int, y: int) -> tuple[int, ...]:
    return tuple(int(i == x) - int(i == y) for i in range(n))
