"""Refute that a family represents a machine: equations that it forces add up to one vector for two states (T3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from flint import fmpq_mat, fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.language import distinguish
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.families.closure import Obstruction, fractions_of, obstruction, pivot_columns
from fsa2lrnn.families.family_answers import Impossibility, Term
from fsa2lrnn.families.four_words import shortest_four_words
from fsa2lrnn.families.identities import Family

_PAIRS_TRIED = 32  # merged pairs among which the certificate with the fewest terms is chosen


def refuted(minimal: MooreMachine, letters: str, family: str) -> Impossibility | None:
    """Return the refutation of a family all of whose letters are of a form that `Family` names, or None."""
    outcome = refute(minimal, Family(letters), short_words=False)
    return replace(outcome, family=family) if isinstance(outcome, Impossibility) else None


def refute(minimal: MooreMachine, form: Family, short_words: bool) -> Impossibility | Obstruction:
    """Return the refutation of the family `form` for a minimal machine, or W of T3 if it separates all states."""
    space = obstruction(form, minimal.delta)
    numbers, n_classes = space.merged()
    if n_classes == minimal.n_states:
        return space
    states, terms = _combination(space, numbers)
    words = shortest_four_words(form, minimal.delta, minimal.start) if short_words else None
    sizes = (len(space.basis), minimal.n_states - 1)
    return Impossibility(minimal, form.name, states, distinguish(minimal, *states) or (), terms, words, sizes)


def _combination(space: Obstruction, numbers: np.ndarray) -> tuple[tuple[int, int], tuple[Term, ...]]:
    """Return two states that W merges, and the fewest equations found that add up to their difference."""
    pairs = [(p, q) for p in range(len(numbers)) for q in range(p + 1, len(numbers)) if numbers[p] == numbers[q]]
    pairs = pairs[:_PAIRS_TRIED]  # states are numbered breadth first, so these are near the start
    pivots = pivot_columns(space.basis)
    # On the pivot columns the basis is an invertible square matrix; e_p − e_q lies in W, so these entries determine its
    # coefficients.
    square = fmpq_mat(fmpz_mat(space.basis[:, pivots].T.tolist()))
    differences = [[int(column == p) - int(column == q) for p, q in pairs] for column in pivots]
    columns = fractions_of(square.solve(fmpq_mat(fmpz_mat(differences)))).T
    best = min(range(len(pairs)), key=lambda j: np.count_nonzero(columns[j]))
    terms = tuple(
        Term(value, origin.source, origin.target, origin.words, origin.then)
        for value, origin in zip(columns[best], space.origins, strict=True)
        if value
    )
    return pairs[best], terms
