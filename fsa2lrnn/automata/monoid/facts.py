"""The parts of a classification: facts with the method of their proof, witnesses, and the action of the letters."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.automata.language import share_cells
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.display import Brief

Letters = tuple[Hashable, ...]
_SPELT = 40  # letters of a word that is written in full


@dataclass(frozen=True)
class FactWitness(Brief):
    """The reason why a fact is false: words and states of the minimal machine.

    Args:
        says: the reason as a sentence.
        words: words, tuples of letters; the function that returns the fact documents what they do.
        states: the numbers of the states on which they do it.
    """

    says: str
    words: tuple[Letters, ...]
    states: tuple[int, ...]


@dataclass(frozen=True)
class Fact(Brief):
    """The value of a property of a machine, with the method that guarantees it; `bool(fact)` raises `TypeError`.

    Args:
        value: True, False or a number; None if a limit was reached before an answer.
        method: the method that guarantees the value, or the limit that was reached.
        witness: the reason for the value False.
    """

    value: bool | int | None
    method: str
    witness: FactWitness | None = None

    def __bool__(self) -> NoReturn:
        raise TypeError("a Fact is not a truth value, it may be undecided: ask whether its value is True or False")

    @property
    def answer(self) -> str:
        """The value as text: yes, no, undecided or a number."""
        if self.value is None:
            return "undecided"
        return {True: "yes", False: "no"}[self.value] if isinstance(self.value, bool) else f"{self.value:,}"

    def explain(self) -> str:
        """Return one line of text: the answer, the reason for a value False, and the method."""
        reason = f": {self.witness.says}" if self.witness else ""
        return f"{self.answer}{reason} ({self.method})"

    def to_json(self) -> dict[str, Any]:
        """Return the fact as a JSON object, with letters as `symbols.to_json` writes them."""
        witness = self.witness and {
            "says": self.witness.says,
            "words": [[symbols.to_json(letter) for letter in word] for word in self.witness.words],
            "states": list(self.witness.states),
        }
        return {"value": self.value, "method": self.method, "witness": witness}


def refuted(method: str, says: str, words: Iterable[Letters], states: Iterable[int]) -> Fact:
    """Return a fact of value False with its witness."""
    return Fact(False, method, FactWitness(says, tuple(words), tuple(int(q) for q in states)))


@dataclass(frozen=True, eq=False)
class Action:
    """The distinct maps of states to states by the letters of a minimal machine.

    Args:
        letters: the maps, unsigned integers, shape (k, n).
        names: a letter for each of the k maps.
        alphabet: all letters of the machine, for the display of words.
    """

    letters: np.ndarray
    names: Letters
    alphabet: Letters

    @classmethod
    def of(cls, machine: MooreMachine) -> Action:
        """Return the action of a minimal machine."""
        _, rows = share_cells(machine.delta)
        dtype = np.uint16 if machine.n_states <= 2**16 else np.uint32
        return cls(machine.delta[rows].astype(dtype), tuple(machine.alphabet[a] for a in rows), machine.alphabet)

    @property
    def n_states(self) -> int:
        """The number of states, n."""
        return self.letters.shape[1]

    @property
    def successors(self) -> np.ndarray:
        """The graph of states: int64, shape (n, k)."""
        return np.ascontiguousarray(self.letters.T, np.int64)

    def word(self, numbers: Iterable[int]) -> Letters:
        return tuple(self.names[a] for a in numbers)

    def path(self, graph: np.ndarray, start: int, goal: int) -> Letters:
        """Return a shortest non-empty word that labels a path of a graph, (N, k); there must be a path."""
        return self.word(map_kernels.path(graph, start, goal).tolist())

    def follow(self, q: int, numbers: Iterable[int]) -> list[int]:
        """Return q and the states after every letter of a word, given as row numbers of `letters`."""
        states = [q]
        for a in numbers:
            states.append(int(self.letters[a, states[-1]]))
        return states

    def spell(self, word: Letters) -> str:
        """Return a word as text for a sentence, with its middle left out if it is long."""
        if not word:
            return "the empty word"
        quoted = repr if symbols.is_textual(self.alphabet) else str
        if len(word) <= _SPELT:
            return quoted(symbols.word_text(word, self.alphabet))
        first, last = (symbols.word_text(part, self.alphabet) for part in (word[: _SPELT // 2], word[-1:]))
        space = "" if symbols.is_character_alphabet(self.alphabet) else " "
        return f"{quoted(f'{first}{space}…{space}{last}')} ({len(word)} letters)"
