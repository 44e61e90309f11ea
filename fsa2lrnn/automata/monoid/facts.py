"""What a classification is made of: facts with the method that found them, and witnesses that can be checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.automata.machine import MooreMachine

Letters = tuple[Hashable, ...]
_SPELT = 40  # letters of a word that is written in full


@dataclass(frozen=True)
class FactWitness:
    """Why a fact is false, in words and states of the minimal machine.

    Args:
        says: the reason as a sentence; the functions that find witnesses state what it asserts of words and states.
        words: tuples of letters.
        states: numbers of states.
    """

    says: str
    words: tuple[Letters, ...]
    states: tuple[int, ...]


@dataclass(frozen=True)
class Fact:
    """An answer and how it was found.

    Args:
        value: True, False or a number; None where a limit was reached before an answer.
        method: what guarantees the value, or which limit was reached.
        witness: for a fact that is false, why.
    """

    value: bool | int | None
    method: str
    witness: FactWitness | None = None

    def __bool__(self) -> NoReturn:
        raise TypeError("a Fact is no truth value, since it may be undecided: ask whether its value is True or False")

    @property
    def answer(self) -> str:
        """The value as people say it: yes, no, undecided or a number."""
        if self.value is None:
            return "undecided"
        return {True: "yes", False: "no"}[self.value] if isinstance(self.value, bool) else f"{self.value:,}"

    def explain(self, detail: str = "") -> str:
        """The answer, a detail, the reason where it is no, and the method, on one line."""
        reason = f": {self.witness.says}" if self.witness else ""
        return f"{self.answer}{detail}{reason} ({self.method})"

    def to_json(self) -> dict[str, Any]:
        """The fact for `json.dumps`, letters as `symbols.to_json` writes them."""
        witness = self.witness and {
            "says": self.witness.says,
            "words": [[symbols.to_json(letter) for letter in word] for word in self.witness.words],
            "states": list(self.witness.states),
        }
        return {"value": self.value, "method": self.method, "witness": witness}


@dataclass(frozen=True, eq=False)
class Action:
    """What the letters of a minimal machine do to its states; of letters that act alike only the first is kept.

    Args:
        letters: unsigned integers, shape (k, n).
        names: the k letters.
        alphabet: all letters, names among them, by which words are written.
    """

    letters: np.ndarray
    names: Letters
    alphabet: Letters

    @classmethod
    def of(cls, machine: MooreMachine) -> Action:
        """The action of a machine, which has been minimised."""
        first: dict[bytes, int] = {}
        for a, row in enumerate(machine.delta):
            first.setdefault(row.tobytes(), a)
        kept = list(first.values())
        dtype = np.uint16 if machine.n_states <= 2**16 else np.uint32
        return cls(machine.delta[kept].astype(dtype), tuple(machine.alphabet[a] for a in kept), machine.alphabet)

    @property
    def n_states(self) -> int:
        """n."""
        return self.letters.shape[1]

    @property
    def successors(self) -> np.ndarray:
        """The graph of states: int64, shape (n, k)."""
        return np.ascontiguousarray(self.letters.T, np.int64)

    def word(self, numbers: Iterable[int]) -> Letters:
        """Numbers of rows as a word."""
        return tuple(self.names[a] for a in numbers)

    def follow(self, q: int, numbers: Iterable[int]) -> list[int]:
        """The states from q along a word of row numbers, q among them."""
        states = [q]
        for a in numbers:
            states.append(int(self.letters[a, states[-1]]))
        return states

    def spell(self, word: Letters) -> str:
        """A word as it stands in a sentence, shortened in the middle when it is long."""
        if not word:
            return "the empty word"
        quoted = repr if symbols.is_textual(self.alphabet) else str
        if len(word) <= _SPELT:
            return quoted(symbols.word_text(word, self.alphabet))
        first, last = (symbols.word_text(part, self.alphabet) for part in (word[: _SPELT // 2], word[-1:]))
        space = "" if symbols.is_character_alphabet(self.alphabet) else " "
        return f"{quoted(f'{first}{space}…{space}{last}')} ({len(word)} letters)"
