"""Which family of linear recurrent layers can represent which automaton: exactly, with a witness or a certificate.

T3 of docs/theory.md: a family forces identities between the linear parts of words; they generate a space W of
differences of states that every layer of the family maps to zero. The machine has a representation if and only if no
e_p − e_q lies in W, and then the quotient by W is one.

>>> from fsa2lrnn.automata import zoo
>>> represent(zoo.flip_flop(), "diagonal[0,1]").check()
'representable: a diagonal[0,1] layer of 1 dimensions represents this machine'
>>> represent(zoo.ab_star(), "diagonal-complex").four_words
(('b',), ('a', 'b'), ('b', 'a'))
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import fmpq_mat, fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.language import distinguish, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.families.closure import Obstruction, obstruction
from fsa2lrnn.families.four_words import four_words
from fsa2lrnn.families.identities import FAMILIES, Family, family_of
from fsa2lrnn.families.lanes import separating_lanes
from fsa2lrnn.families.lattice import integer_affine
from fsa2lrnn.families.recheck import Rejected, recheck
from fsa2lrnn.families.verdicts import Impossibility, Term, Unknown, Witness

_PAIRS_TRIED = 32  # merged pairs among which the certificate with the fewest terms is chosen


def represent(machine: MooreMachine, family: str, short_words: bool = True) -> Witness | Impossibility:
    """Whether a layer of the family can represent the machine, decided exactly over the rationals.

    Args:
        machine: any machine; its minimal machine is what gets represented, one vector a state.
        family: a name in `FAMILIES`.
        short_words: whether to look for a four-word certificate beside an impossibility.

    Raises:
        UnsupportedFormat: for an unknown family.
        BudgetExceeded: for a witness with roots of unity of an order beyond `lanes.MAX_ORDER`.
    """
    form, minimal = family_of(family), minimise(machine)
    found = obstruction(form, minimal.delta)
    numbers, n_classes = found.merged()
    sizes = (len(found.basis), minimal.n_states - 1)
    if n_classes < minimal.n_states:
        states, terms = _combination(found, numbers)
        words = four_words(form, minimal.delta, minimal.start) if short_words else None
        return Impossibility(minimal, family, states, distinguish(minimal, *states) or (), terms, words, sizes)
    if family == "lti":
        return Witness(minimal, family, integer_affine(found.functions, minimal.delta, minimal.start), sizes)
    return Witness(minimal, family, separating_lanes(found.functions, minimal.delta, minimal.start, form), sizes)


def _combination(found: Obstruction, numbers: np.ndarray) -> tuple[tuple[int, int], tuple[Term, ...]]:
    """Two merged states and the combination of W's basis that equals e_p − e_q, the shortest among some pairs."""
    pairs = [(p, q) for p in range(len(numbers)) for q in range(p + 1, len(numbers)) if numbers[p] == numbers[q]]
    pairs = pairs[:_PAIRS_TRIED]  # states are numbered breadth first, so these are near the start
    pivots = _pivot_columns(found.basis)
    square = fmpq_mat(fmpz_mat(found.basis[:, pivots].T.tolist()))
    wanted = [[int(column == p) - int(column == q) for p, q in pairs] for column in pivots]
    solution = square.solve(fmpq_mat(fmpz_mat(wanted)))
    columns = [[solution[i, j] for i in range(len(pivots))] for j in range(len(pairs))]
    best = min(range(len(pairs)), key=lambda j: sum(value != 0 for value in columns[j]))
    terms = tuple(
        Term(Fraction(int(value.p), int(value.q)), origin.source, origin.target, origin.words, origin.then)
        for value, origin in zip(columns[best], found.origins, strict=True)
        if value != 0
    )
    return pairs[best], terms


def _pivot_columns(basis: np.ndarray) -> list[int]:
    reduced, _, rank = fmpz_mat(basis.tolist()).rref()
    return [next(j for j in range(basis.shape[1]) if reduced[i, j] != 0) for i in range(rank)]


__all__ = [
    "FAMILIES",
    "Family",
    "Impossibility",
    "Rejected",
    "Term",
    "Unknown",
    "Witness",
    "recheck",
    "represent",
]
