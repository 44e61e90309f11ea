"""Decide what layers with a linear read-out compute, with any number of vectors per state (T66 of docs/theory.md).

The logits W x + b are the indicators of the outputs. Then the least layer has one vector per state: combinations of
states whose outputs agree after every word become one vector, and the properties of a family's matrices that T3 uses
pass to it. So it is in the family iff all equations that the family forces hold in it, and its dimension, the rank of
the Hankel matrix less one, is a lower bound on H·b in every family.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from flint import fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn import symbols
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import NotExact, counted
from fsa2lrnn.families.closure import Echelon, Origin, obstruction, pivot_columns
from fsa2lrnn.families.family_answers import CertifiedAnswer, certificate_header
from fsa2lrnn.families.identities import FORCED, Family

_PRIME = 67_108_859
CLOSED = FORCED | {
    "liquid-s4": Family("commuting-differences"),
    "liquid-s4-diagonal": FORCED["diagonal-complex"],
    "householder": Family("contracting"),
}
"""Properties of families that pass to invariant subspaces and quotients, so that a "no" holds with a linear read-out
however many vectors a state has."""
Word = tuple[int, ...]


@dataclass(frozen=True)
class LinearReadout(CertifiedAnswer):
    """The answer for layers of a family whose logits W x + b are 1 for the output of each non-empty word, and 0 else.

    Args:
        decision: "yes", "no" or "unknown".
        prefixes, suffixes: words, each suffix with an output, whose Hankel matrix is not singular.
        enough: a number of dimensions that suffices, in the family if the decision is "yes".
        equation: an equation that the family forces, and the word after which it does not hold for the outputs.
    """

    answer: ClassVar[str] = "unknown"
    decision: str
    prefixes: tuple[Word, ...]
    suffixes: tuple[tuple[int, Word], ...]
    enough: int
    equation: tuple[Origin, Word] | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "answer", self.decision)

    @property
    def least(self) -> int:
        """The lower bound on H·b, in every family: the rank of the Hankel matrix less one."""
        return len(self.prefixes) - 1

    def explain(self) -> str:
        exactly = self.decision == "yes" and self.least == self.enough
        size = f"{'Exactly' if exactly else 'At least'} {counted(self.least, 'dimension')}, however many vectors a state has."
        if self.equation is None:
            return size
        text = symbols.word_text([self.machine.alphabet[a] for a in self.equation[1]], self.machine.alphabet) or "ε"
        return f"No such layer of any size: the outputs after {text} break an equation that the family forces. {size}"

    def to_json(self) -> dict[str, Any]:
        outputs = tuple(dict.fromkeys(self.machine.outputs))
        equation = None
        if self.equation is not None:
            origin, separator = self.equation
            equation = {
                "from": origin.source,
                "to": origin.target,
                "words": [[list(run) for run in word] for word in origin.words],
                "then": _runs(origin.then),
                "separator": _runs(separator),
            }
        return {
            **certificate_header(self.machine, self.family, "linear-readout"),
            "prefixes": [_runs(word) for word in self.prefixes],
            "suffixes": [[symbols.to_json(outputs[y]), _runs(word)] for y, word in self.suffixes],
            "equation": equation,
        }


def linear_readout(minimal: MooreMachine, family: str, form: Family | None) -> LinearReadout:
    """Return the answer for a minimal machine; `form` has properties of the family that pass on, None if none do.

    For the families of T3 the decision is exact. For others it is "unknown" unless an equation refutes them, or a block
    holds all states.
    """
    delta, outputs = (
        minimal.delta,
        np.array([[x == y for x in minimal.outputs] for y in dict.fromkeys(minimal.outputs)]),
    )
    functionals, suffixes = _functionals(outputs.astype(np.int64), delta)
    words = _first_words(minimal)
    rows = np.array(functionals)
    # States that some non-empty word reaches: only their outputs count.
    reached = sorted(words)
    chosen = pivot_columns(rows[:, reached].T) if len(reached) else []
    columns = pivot_columns(rows[np.ix_(chosen, reached)])
    prefixes = tuple(words[reached[j]] for j in columns)
    equation = None
    if form is not None:
        space = obstruction(form, delta)
        broken = np.argwhere(rows @ space.basis.T) if len(space.basis) else []
        if len(broken):
            i, j = broken[0]
            equation = space.origins[j], suffixes[i][1]
    block = int(family[6:-1]) if family.startswith("block(") else 0
    is_held = family in FORCED or block >= minimal.n_states
    decision = "no" if equation is not None else "yes" if is_held else "unknown"
    enough = len(rows) - 1 if family in FORCED else minimal.n_states
    return LinearReadout(minimal, family, decision, prefixes, tuple(suffixes[i] for i in chosen), enough, equation)


def _functionals(outputs: np.ndarray, delta: np.ndarray) -> tuple[list[np.ndarray], list[tuple[int, Word]]]:
    """Return a basis of the functions q ↦ [ω(q·w) = y], int64 (r, n), and their outputs y and words w.

    Raises `NotExact` if a prime hides some.
    """
    echelon, found, names = Echelon(outputs.shape[1], _PRIME), list[np.ndarray](), list[tuple[int, Word]]()
    level = [((y, ()), row) for y, row in enumerate(outputs)]
    while level:
        kept = [level[i] for i in echelon.independent(np.array([row for _, row in level]))]
        found += [row for _, row in kept]
        names += [name for name, _ in kept]
        level = [((y, (a, *word)), row[step]) for (y, word), row in kept for a, step in enumerate(delta)]
    images = [row[step] for row in found for step in delta]
    if fmpz_mat(np.array([*found, *outputs, *images]).tolist()).rank() != len(found):
        raise NotExact(f"the outputs span too little modulo {_PRIME}: please report this machine")
    return found, names


def _first_words(machine: MooreMachine) -> dict[int, Word]:
    """Return a shortest non-empty word for each state that one reaches."""
    words, queue = dict[int, Word](), list[tuple[int, Word]]([(machine.start, ())])
    for q, word in queue:
        for a, row in enumerate(machine.delta):
            target = int(row[q])
            if target not in words:
                words[target] = (*word, a)
                queue.append((target, words[target]))
    return words


def _runs(word: Word) -> list[list[int]]:
    return [[a, 1] for a in word]
