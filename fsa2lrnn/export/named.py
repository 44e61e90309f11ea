"""Decide whether one layer of a name represents a machine, by the family that contains it.

Each layer is a special case of a family, so it cannot represent a machine that the family cannot represent. The reverse
does not hold if the layer is narrower: S4's eigenvalues lie within the unit circle, and a cycle of states needs
eigenvalues on it. So a layer gets the answer "yes" only if it is the whole family. The verdicts concern one layer over
letters, with one vector per state (docs/theory.md §4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.families import Verdict, family_of, represent
from fsa2lrnn.families.closure import obstruction
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.layers import LAYERS, of_name

NO, YES, NOT_EXCLUDED, NO_RECURRENCE = "no", "yes", "not excluded", "no recurrence"
_LETTERS_TRIED = 8


@dataclass(frozen=True, eq=False)
class LayerVerdict(Brief):
    """A verdict on whether a named layer represents a machine.

    Attributes:
        name: the canonical name of the layer (`fsa2lrnn.layers`).
        answer: `NO`, `YES`, `NOT_EXCLUDED` or `NO_RECURRENCE`.
        why: the reason, in one line.
        verdict: the verdict of the family with its certificate; None for a layer without a family.
    """

    name: str
    answer: str
    why: str
    verdict: Verdict | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON object, without the certificate, which the verdict of the family holds."""
        row = LAYERS[self.name]
        return {"is": row.recurrence, "family": row.family or None, "answer": self.answer, "why": self.why}


def say(machine: MooreMachine, name: str, verdict: Verdict | None = None) -> LayerVerdict:
    """Return the verdict on whether a named layer represents a machine; `verdict` is that on its family, if known.

    Raises `UnsupportedFormat` for an unknown name, and for a layer that no family describes, and `BudgetExceeded` as
    `represent` does.

    >>> from fsa2lrnn.automata import zoo
    >>> say(zoo.sum_mod(2), "lru").answer, say(zoo.sum_mod(2), "rwkv4").why
    ('no', "the family lti-diagonalisable cannot, even where every other letter is '0'")
    """
    named = of_name(name)
    name = named.name
    if "not causal" in named.recurrence:
        return LayerVerdict(
            name, NO_RECURRENCE, "outputs depend on later letters: no theorem about recurrences applies"
        )
    family_of(name)
    if named.is_shifted:
        return _shifted(machine, name, named.family)
    verdict = represent(machine, named.family, short_words=False) if verdict is None else verdict
    if verdict.answer == "no":
        return LayerVerdict(name, NO, f"no layer of the family {named.family} can", verdict)
    if named.is_family and verdict.answer == "yes":
        return LayerVerdict(name, YES, f"it is all of the family {named.family}, which can", verdict)
    reason = "its family is not decided" if verdict.answer == "unknown" else f"the family {named.family} can"
    return LayerVerdict(
        name, NOT_EXCLUDED, f"{reason}; the layer is narrower" if not named.is_family else reason, verdict
    )


def _shifted(machine: MooreMachine, name: str, family: str) -> LayerVerdict:
    """Return the verdict on a layer of a family that reads each letter together with the previous one.

    If every second letter is c, two steps add a vector that depends only on the letter between, and their linear part
    is the square of one step's. So the family would represent the states that c reaches (T3 requires no start state).
    """
    minimal = minimise(machine)
    for c in range(min(len(minimal.alphabet), _LETTERS_TRIED)):
        delta = every_other(minimal.delta, c)
        if obstruction(FORCED[family], delta).merged()[1] < delta.shape[1]:
            why = f"the family {family} cannot, even where every other letter is {minimal.alphabet[c]!r}"
            return LayerVerdict(name, NO, why)
    return LayerVerdict(
        name, NOT_EXCLUDED, f"the family {family} can, where every other letter is the same; the layer is narrower"
    )


def every_other(delta: np.ndarray, c: int) -> np.ndarray:
    """Return the table of the words "letter, then c" on the m states that c reaches: (|Σ|, n) -> (|Σ|, m).

    >>> every_other(np.array([[0, 0, 0], [1, 2, 2]]), 1).tolist()
    [[0, 0], [1, 1]]
    """
    reached, numbers = np.unique(delta[c], return_inverse=True)
    return numbers[delta[:, reached]]
