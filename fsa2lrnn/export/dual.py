"""The dual of a machine: one PD-SSM layer that represents it (docs/constructions.md).

A PD-SSM layer computes h ← D·(P h) + B x with one-hot rows of P and |D| in [0, 1], so each coordinate copies another
and adds a number. It represents every machine.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded

MAX_COORDINATES = 512
ONE, ZERO = 0, 1  # the coordinates that always hold 1 and 0


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual of a machine: an implementation by layers h ← P h + b with one-hot rows of P and small integers.

    h is e₁ at the start. A new coordinate is an old one plus a number, so coordinates are functions of the state: an
    indicator of an output, φ(q) = [ω(q) = γ], and its compositions with words, φ∘a. The entry of h for φ is φ(q) −
    φ(q₀). There are about as many coordinates as the determinised reversed machine has states: at worst 2ⁿ, for a group
    at most its order per output.

    Args:
        machine: the minimal machine.
        sources: the coordinate that each coordinate copies at a letter, int64 (|Σ|, N).
        added: the numbers that are added to the copies, −1, 0 or 1, int64 (|Σ|, N).
        shown: the coordinate of each output but the first, int64 (|Γ| − 1,).
        at_start: 1 for that of these outputs that the machine has at the start, otherwise 0, int64 (|Γ| − 1,).
    """

    machine: MooreMachine
    sources: np.ndarray
    added: np.ndarray
    shown: np.ndarray
    at_start: np.ndarray

    @property
    def n_coordinates(self) -> int:
        return self.sources.shape[1]

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """The distinct outputs of the machine, in the order of its states."""
        return tuple(dict.fromkeys(self.machine.outputs))

    def start(self) -> np.ndarray:
        """Return the state h before a word, int64 (N,)."""
        return np.eye(self.n_coordinates, dtype=np.int64)[ONE]

    def step(self, h: np.ndarray, a: int) -> np.ndarray:
        """Return the state after letter number a: int64 (N,) -> (N,)."""
        return h[self.sources[a]] + self.added[a]

    def output(self, h: np.ndarray) -> Hashable:
        scores = h[self.shown] + self.at_start
        return self.outputs[0 if not scores.any() else 1 + int(scores.argmax())]


def dual(machine: MooreMachine, limit: int = MAX_COORDINATES) -> Dual:
    """Return the dual of the minimal machine; raise `BudgetExceeded` beyond `limit` coordinates.

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
