"""Which family of linear recurrent layers can represent which automaton: exactly, with a witness or a certificate.

T3 of docs/theory.md: a family forces identities between the linear parts of words; they generate a space W of
differences of states that every layer of the family maps to zero. The machine has a representation if and only if no
e_p − e_q lies in W, and then the quotient by W is one.

>>> from fsa2lrnn.automata import zoo
>>> represent(zoo.flip_flop(), "diagonal[0,1]").check()
'representable: one diagonal[0,1] layer of 1 dimension represents this machine'
>>> represent(zoo.ab_star(), "diagonal-complex").four_words
(('b',), ('a', 'b'), ('b', 'a'))
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
from flint import fmpq_mat, fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.language import distinguish, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families.blocks import BlockImpossibility, BlockWitness, RealBlockWitness, blocks_of_size
from fsa2lrnn.families.closure import Obstruction, obstruction
from fsa2lrnn.families.four_words import shortest_four_words
from fsa2lrnn.families.householder import FactorImpossibility, HeadsWitness, HouseholderWitness, householder
from fsa2lrnn.families.identities import DENSE_LIQUID, FORCED, Family
from fsa2lrnn.families.lanes import separating_lanes
from fsa2lrnn.families.lattice import Affine, integer_affine
from fsa2lrnn.families.liquid import LiquidWitness, dense_liquid, tie_lanes
from fsa2lrnn.families.recheck import Rejected, recheck
from fsa2lrnn.families.verdicts import Impossibility, Term, Unknown, Witness

Verdict = (
    Witness
    | LiquidWitness
    | HouseholderWitness
    | HeadsWitness
    | BlockWitness
    | RealBlockWitness
    | Impossibility
    | BlockImpossibility
    | FactorImpossibility
    | Unknown
)
"""What `represent` answers: weights, a certificate that there are none, or neither."""

FAMILIES: dict[str, str] = {
    **{name: family.description for name, family in FORCED.items()},
    "liquid-s4-diagonal": "A + diag(Bu) with diagonal A and Bu added: Liquid-S4",
    "liquid-s4": "A + diag(Bu) with dense A and Bu added: Liquid-S4",
    "householder": "products of factors I - beta k k^T: DeltaNet, DeltaProduct; householder(2) for at most 2 a letter",
    "block(8)": "input-dependent blocks of size 8 with real entries, any size in brackets",
}
"""The families that `represent` knows, with the form of A in each; sizes in brackets may be others."""
_BLOCK = re.compile(r"block\(([1-9][0-9]{0,8})\)")
_FACTORS = re.compile(r"householder\(([1-9][0-9]{0,8})\)")

_PAIRS_TRIED = 32  # merged pairs among which the certificate with the fewest terms is chosen


def represent(machine: MooreMachine, family: str, short_words: bool = True) -> Verdict:
    """Whether a layer of the family can represent the machine, exactly.

    Args:
        machine: any machine; its minimal machine is what gets represented, one vector a state.
        family: a name in `FAMILIES`. The input-independent and diagonal ones are decided by T3; Liquid-S4, Householder
            products have sufficient conditions, and `Unknown` where these do not hold. Blocks of bounded size are
            decided as far as the bounds of `minimal_block` meet.
        short_words: whether to look for a four-word certificate beside an impossibility.

    Raises:
        UnsupportedFormat: for an unknown family.
        BudgetExceeded: for a witness with roots of unity of an order beyond `lanes.MAX_ORDER`.
    """
    if block := _BLOCK.fullmatch(family):
        return blocks_of_size(minimise(machine), int(block[1]))
    if factors := _FACTORS.fullmatch(family):
        return householder(minimise(machine), int(factors[1]))
    description_of(family)
    minimal = minimise(machine)
    if family == "householder":
        return householder(minimal)
    if family == "liquid-s4":
        liquid = dense_liquid(minimal)
        refuted = _refute(minimal, DENSE_LIQUID, short_words=False) if isinstance(liquid, Unknown) else None
        return refuted if isinstance(refuted, Impossibility) else liquid
    if family == "liquid-s4-diagonal":
        diagonal = _decide(minimal, FORCED["diagonal-complex"], short_words)
        if isinstance(diagonal, Witness) and not isinstance(diagonal.form, Affine):
            return tie_lanes(diagonal.form, minimal)
        return replace(diagonal, family=family)
    return _decide(minimal, FORCED[family], short_words)


def _decide(minimal: MooreMachine, form: Family, short_words: bool) -> Witness | Impossibility:
    """T3: a combination that merges two states, or coordinates that tell all apart."""
    found = _refute(minimal, form, short_words)
    if isinstance(found, Impossibility):
        return found
    sizes = (len(found.basis), minimal.n_states - 1)
    if form.name == "lti":
        return Witness(minimal, form.name, integer_affine(found.functions, minimal.delta, minimal.start), sizes)
    return Witness(minimal, form.name, separating_lanes(found.functions, minimal.delta, minimal.start, form), sizes)


def _refute(minimal: MooreMachine, form: Family, short_words: bool) -> Impossibility | Obstruction:
    """The certificate, if the family's W holds a difference of two states; else W."""
    found = obstruction(form, minimal.delta)
    numbers, n_classes = found.merged()
    if n_classes == minimal.n_states:
        return found
    states, terms = _combination(found, numbers)
    words = shortest_four_words(form, minimal.delta, minimal.start) if short_words else None
    sizes = (len(found.basis), minimal.n_states - 1)
    return Impossibility(minimal, form.name, states, distinguish(minimal, *states) or (), terms, words, sizes)


def description_of(family: str) -> str:
    """What a family is. Raises `UnsupportedFormat` for an unknown name."""
    if family in FAMILIES:
        return FAMILIES[family]
    if _BLOCK.fullmatch(family):
        return FAMILIES["block(8)"]
    if _FACTORS.fullmatch(family):
        return FAMILIES["householder"]
    raise UnsupportedFormat(f"family {family!r} is not known: choose one of {', '.join(FAMILIES)}")


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
    "BlockImpossibility",
    "BlockWitness",
    "FactorImpossibility",
    "HeadsWitness",
    "HouseholderWitness",
    "Impossibility",
    "LiquidWitness",
    "RealBlockWitness",
    "Rejected",
    "Term",
    "Unknown",
    "Verdict",
    "Witness",
    "description_of",
    "recheck",
    "represent",
]
