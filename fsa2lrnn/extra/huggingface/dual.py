"""The dual of a machine: coordinates that copy one another, for layers with such transitions.

In h ← P h + b with rows of P that are one-hot, a new coordinate is an old one plus a number. So coordinates are not
states but functions of the state: an indicator of an output, φ(q) = [ω(q) = γ], and whatever words make of it, φ∘a.
What h holds of φ is φ(q) − φ(q₀), which is 0 at the start, as h is there. There are as many as the reversed machine has
states once it is deterministic, at worst 2ⁿ, and for a group no more than its order an output.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.extra.huggingface.plan import OneLayerPlan

MAX_COORDINATES = 512
ONE, ZERO = 0, 1  # coordinates that always hold these


@dataclass(frozen=True, eq=False)
class Dual(OneLayerPlan):
    """A machine as copies and sums of small integers; h is e₁ at the start.

    Args:
        machine: the minimal machine.
        sources: the coordinate that each copies at a letter, int64 (|Σ|, N).
        added: what is added to it, −1, 0 or 1, int64 (|Σ|, N).
        shown: of each output but the first, its coordinate, int64 (|Γ| − 1,).
        at_start: whether these are what the machine puts out at the start, 0 or 1, int64 (|Γ| − 1,).
    """

    machine: MooreMachine
    sources: np.ndarray
    added: np.ndarray
    shown: np.ndarray
    at_start: np.ndarray

    @property
    def n_coordinates(self) -> int:
        """The number of coordinates, N."""
        return self.sources.shape[1]

    @property
    def how(self) -> str:
        """The construction, in one line."""
        return f"the dual: {self.n_coordinates} coordinates that copy one another"

    def start(self) -> np.ndarray:
        """Return h before a word, (N,)."""
        return np.eye(self.n_coordinates, dtype=np.int64)[ONE]

    def step(self, h: np.ndarray, a: int) -> np.ndarray:
        """Return h after letter number a."""
        return h[self.sources[a]] + self.added[a]

    def output(self, h: np.ndarray) -> Hashable:
        """Return the output of h."""
        scores = h[self.shown] + self.at_start
        return self.outputs[0 if not scores.any() else 1 + int(scores.argmax())]


def dual(machine: MooreMachine, limit: int = MAX_COORDINATES) -> Dual:
    """Return the dual of a machine, minimised first; raise `BudgetExceeded` beyond `limit` coordinates.

    >>> from fsa2lrnn.automata import zoo
    >>> run = dual(zoo.sum_mod(5))
    >>> h = run.start()
    >>> for letter in (3, 4, 1):
    ...     h = run.step(h, letter)
    >>> run.n_coordinates, run.output(h)
    (7, 3)
    """
    minimal = minimise(machine)
    outputs = tuple(dict.fromkeys(minimal.outputs))
    numbers = {np.zeros(minimal.n_states, np.int64).tobytes(): ZERO}
    functions = list[np.ndarray]()

    def number(values: np.ndarray) -> int:
        code = numbers.setdefault(values.tobytes(), len(functions) + 2)
        if code == len(functions) + 2:
            functions.append(values)
            if code >= limit:
                raise BudgetExceeded(
                    f"the dual of these {minimal.n_states:,} states has more than {limit:,} coordinates, and every "
                    "letter takes a matrix of their square: give a smaller machine"
                )
        return code

    indicators = [np.array([output == target for output in minimal.outputs], np.int64) for target in outputs[1:]]
    at_start = np.array([values[minimal.start] for values in indicators], np.int64)
    shown = np.array([number(v - v[minimal.start]) for v in indicators], np.int64)
    rows = [[(ONE, 0), (ZERO, 0)] for _ in minimal.delta]
    for values in functions:  # grows
        for row, letter in zip(rows, minimal.delta, strict=True):
            after = values[letter]
            row.append((number(after - after[minimal.start]), int(after[minimal.start])))
    table = np.array(rows, np.int64)
    return Dual(minimal, table[..., 0], table[..., 1], shown, at_start)
