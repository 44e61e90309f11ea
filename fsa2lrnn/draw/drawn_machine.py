"""Convert a Moore machine to data for drawings: text instead of symbols, and short lists of the letters of an arrow."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fsa2lrnn import symbols

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine

SHORT, SHORT_OUTPUT = 5, 6  # the most characters of a name, and of a smaller output, that fit into a circle
_RUN = 4  # the fewest consecutive letters that are written as a range
_WIDE, _NARROW = 11.5, 6.9  # pixels of a wide character in a label, and of any other


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

    @classmethod
    def of_machine(cls, machine: MooreMachine) -> DrawnMachine:
        """Return the drawn machine of a Moore machine; states without labels are named by their numbers."""
        return cls.of(machine.delta.tolist(), machine.outputs, machine.start, machine.alphabet, machine.labels)

    @property
    def names(self) -> list[str]:
        """The names of states in drawings: their labels if all are short, otherwise their numbers from 0."""
        is_short = max(map(len, self.states)) <= SHORT and len(set(self.states)) == len(self.states)
        return self.states if is_short else [str(q) for q in range(len(self.states))]

    @property
    def short_outputs(self) -> list[str]:
        """The outputs in drawings, which fit into circles and differ where outputs do."""
        labels = fitted(self.outputs, SHORT_OUTPUT)
        return [labels[output] for output in self.outputs]

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


def fitted(texts: Iterable[str], most: int) -> dict[str, str]:
    """Return a label of at most `most` characters for each text, all different: longer texts are cut and numbered.

    >>> fitted(["(1,2)", "open the door", "open the gate"], 8)
    {'(1,2)': '(1,2)', 'open the door': 'open t…1', 'open the gate': 'open t…2'}
    """
    labels = {text: text for text in texts}
    long = [text for text in labels if len(text) > most]
    return labels | {text: f"{text[: most - 1 - len(str(k))]}…{k}" for k, text in enumerate(long, start=1)}


def letters_text(given: Sequence[int], alphabet: Sequence[str], names_others: bool = True) -> str:
    """Return the letters with numbers `given` as text, in order.

    Unless `names_others` is False, the text is "any" for all letters, and "not …" if few letters are missing.

    >>> digits = [*"0123456789", "+"]
    >>> letters_text(range(10), digits), letters_text([1, 2, 10], digits), letters_text(range(11), digits)
    ('0–9', '1, 2, +', 'any')
    >>> letters_text([0, 1, 2, 3, 4, 6, 7, 8, 9, 10], digits)
    'not 5'

    One letter alone is called by its name, however short the others' are.

    >>> letters_text([0], ["tick tock", "-"])
    'tick tock'
    """
    if names_others and len(given) == len(alphabet) > 2:
        return "any"
    rest = sorted(set(range(len(alphabet))) - set(given))
    text = ", ".join(_runs(sorted(given), alphabet))
    others = "not " + ", ".join(alphabet[a] for a in rest)
    if names_others and len(given) > 1 and 0 < len(rest) <= 2 and len(others) < len(text):
        text = others
    return text


def width(text: str) -> float:
    """Return an upper estimate of the width of a label in pixels, because fonts differ."""
    return sum(_WIDE if unicodedata.east_asian_width(c) in "WF" else _NARROW for c in text) + 2


def _runs(given: list[int], alphabet: Sequence[str]) -> list[str]:
    runs: list[list[str]] = []
    for a in given:
        if runs and _follows(runs[-1][-1], alphabet[a]):
            runs[-1].append(alphabet[a])
        else:
            runs.append([alphabet[a]])
    return [name for run in runs for name in ([f"{run[0]}–{run[-1]}"] if len(run) >= _RUN else run)]


def _follows(a: str, b: str) -> bool:
    return len(a) == len(b) == 1 and ord(b) == ord(a) + 1 and a.isalnum() and b.isalnum()
