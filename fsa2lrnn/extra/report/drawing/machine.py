"""Convert a Moore machine to data for drawings, with text instead of symbols."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn import symbols

SHORT = 5  # the most characters of a label that fits into a circle


@dataclass(frozen=True)
class DrawnMachine:
    """A Moore machine whose labels and symbols are text.

    Args:
        states, alphabet: the labels of the states, and the letters.
        outputs: the output of each state.
        delta: the number of the next state, [letter][state]; −1 if the letter does not occur in the state.
        start: the initial state.
    """

    states: list[str]
    alphabet: list[str]
    outputs: list[str]
    delta: list[list[int]]
    start: int

    @classmethod
    def of(
        cls,
        delta: Sequence[Sequence[int]],
        outputs: Iterable[Hashable],
        start: int,
        alphabet: Iterable[Hashable],
        labels: Iterable[Hashable] | None = None,
    ) -> DrawnMachine:
        """Return the drawn machine for symbols of any type; without labels, states are named by their numbers.

        >>> DrawnMachine.of([[1, 0]], [False, True], 0, "a", [(1, 2), "x"]).states
        ['1, 2', 'x']
        """
        rows = [[int(q) for q in row] for row in delta]
        return cls(
            written(labels or range(len(rows[0]))), written(alphabet), written_outputs(outputs), rows, int(start)
        )

    @property
    def names(self) -> list[str]:
        """The names of states in drawings: their labels if all are short, otherwise their numbers from 0."""
        is_short = max(map(len, self.states)) <= SHORT and len(set(self.states)) == len(self.states)
        return self.states if is_short else [str(q) for q in range(len(self.states))]

    @property
    def accepting(self) -> list[bool] | None:
        """For an acceptor, whether each state accepts; None for a machine with other outputs."""
        if not set(self.outputs) <= {"accept", "reject"}:
            return None
        return [output == "accept" for output in self.outputs]

    @property
    def arrows(self) -> dict[tuple[int, int], list[int]]:
        """The numbers of the letters that lead from one state to another, by pair of states."""
        found: dict[tuple[int, int], list[int]] = {}
        for a, row in enumerate(self.delta):
            for q, then in enumerate(row):
                if then >= 0:
                    found.setdefault((q, then), []).append(a)
        return found


def written_outputs(outputs: Iterable[Hashable]) -> list[str]:
    """Return outputs as text, booleans as accept and reject."""
    return [symbols.show(output) if isinstance(output, bool | np.bool_) else written([output])[0] for output in outputs]


def written(values: Iterable[Hashable]) -> list[str]:
    """Return symbols as text, tuples without their brackets."""
    return [
        ", ".join(symbols.show_label(part) for part in value) if isinstance(value, tuple) else str(value)
        for value in values
    ]
