"""Decide what layers with a linear read-out compute, with any number of vectors per state (T66 of docs/theory.md).

The logits W x + b are the indicators of the outputs. Then the least layer has one vector per state: combinations of
states whose outputs agree after every word become one vector, and the properties of a family's matrices that T3 uses
pass to it. So it is in the family iff all equations that the family forces hold in it, and its dimension, the rank of
the Hankel matrix less one, is a lower bound on H·b in every family.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
"""The families whose properties pass to invariant subspaces and quotients."""
Word = tuple[int, ...]


@dataclass(frozen=True)
class LinearReadout(CertifiedAnswer):
    """The answer for layers of a family whose logits W x + b are 1 for the output of each non-empty word, and 0 else.

    Args:
        answer: "yes", "no" or "unknown".
        prefixes, suffixes: words, each suffix with an output, whose Hankel matrix is not singular.
        enough: a number of dimensions that suffices, in the family if the answer is "yes".
        equation: an equation that the family forces, and the word after which it does not hold for the outputs.
    """

    answer: str  # pyright: ignore[reportIncompatibleVariableOverride] - other answers have one per class
    prefixes: tuple[Word, ...]
    suffixes: tuple[tuple[int, Word], ...]
    enough: int
    equation: tuple[Origin, Word] | None

    @property
    def least(self) -> int:
        """The lower bound on H·b, in every family: the rank of the Hankel matrix less one."""
        return len(self.prefixes) - 1

    def explain(self) -> str:
        least = "Exactly" if self.answer == "yes" and self.least == self.enough else "At least"
        size = f"{least} {counted(self.least, 'dimension')}, however many vectors a state has."
        if self.equation is None:
            return size
        text = symbols.word_text([self.machine.alphabet[a] for a in self.equation[1]], self.machine.alphabet) or "ε"
        return f"No such layer of any size: the outputs after {text} break an equation that the family forces. {size}"

    def to_json(self) -> dict[str, Any]:
        outputs = tuple(dict.fromkeys(self.machine.outputs))
        equation = None
        if self.equation is not None:
            origin, separator = self.equation
            words = [[list(run) for run in word] for word in origin.words]
            states = {"from": origin.source, "to": origin.target}
            equation = states | {"words": words, "then": _runs(origin.then), "separator": _runs(separator)}
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
    rows, suffixes = _functionals(minimal)
    words, equation, is_exact = _first_words(minimal), None, family in FORCED
    reached = sorted(words)  # by some non-empty word: only the outputs of these states count
    chosen = pivot_columns(rows[:, reached].T)
    prefixes = tuple(words[reached[j]] for j in pivot_columns(rows[np.ix_(chosen, reached)]))
    if form is not None:
        space = obstruction(form, minimal.delta)
        for i, j in np.argwhere(rows @ space.basis.T)[:1]:
            equation = space.origins[j], suffixes[i][1]
    is_held = is_exact or (family.startswith("block(") and int(family[6:-1]) >= minimal.n_states)
    answer = "no" if equation is not None else "yes" if is_held else "unknown"
    enough = len(rows) - 1 if is_exact else minimal.n_states
    ends = tuple(suffixes[i] for i in chosen)
    return LinearReadout(
        machine=minimal,
        family=family,
        answer=answer,
        prefixes=prefixes,
        suffixes=ends,
        enough=enough,
        equation=equation,
    )


def _functionals(machine: MooreMachine) -> tuple[np.ndarray, list[tuple[int, Word]]]:
    """Return a basis of the functions q ↦ [ω(q·w) = y], int64 (r, n), and their outputs y and words w.

    Raises `NotExact` if a prime hides some.
    """
    outputs = np.array([[int(x == y) for x in machine.outputs] for y in dict.fromkeys(machine.outputs)])
    echelon, found = Echelon(machine.n_states, _PRIME), list[tuple[tuple[int, Word], np.ndarray]]()
    level = [((y, ()), row) for y, row in enumerate(outputs)]
    while level:
        kept = [level[i] for i in echelon.independent(np.array([row for _, row in level]))]
        found += kept
        level = [((y, (a, *word)), row[step]) for (y, word), row in kept for a, step in enumerate(machine.delta)]
    rows = np.array([row for _, row in found])
    images = [rows[:, step] for step in machine.delta]
    if fmpz_mat(np.concatenate([rows, outputs, *images]).tolist()).rank() != len(found):
        raise NotExact(f"the outputs span too little modulo {_PRIME}: please report this machine")
    return rows, [name for name, _ in found]


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
