"""Breadth-first search over the states that words reach, level by level, with a shortest word to each state.

The search is independent of machines and verdicts: a `TransitionSystem` defines how its states are stepped. `extract`
searches the model's states alone, `fsa2lrnn.verification.walk` jointly with those of a machine.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

S = TypeVar("S")  # a batch of states
R = TypeVar("R", covariant=True)  # the outputs after a letter: output numbers or logits


class TransitionSystem(Protocol[S, R]):
    """A system with states, letters and outputs that a search can step."""

    def start(self) -> S:
        """Return the initial state as a batch of one."""
        ...

    def fan(self, states: S, live: np.ndarray) -> tuple[R, S]:
        """Return outputs and states after M live letters: N states, bool (N, |Σ|) -> M outputs, M states.

        The letters after one state are adjacent, in order.
        """
        ...

    def pick(self, states: S, places: np.ndarray) -> S:
        """Return the states at these indices."""
        ...

    def rows(self, states: S) -> np.ndarray:
        """Return the states as rows of bytes, equal only for states that behave equally: uint8 (N, D)."""
        ...


class Interner:
    """A map from rows of bytes to numbers, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._number: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._number)

    def number(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of each row, numbering new rows in order: uint8 (N, D) -> int64 (N,)."""
        # Slices of one bytes object are hashed directly, without an array per row.
        number, packed = self._number, rows.tobytes()
        width = rows.shape[1]
        return np.array(
            [number.setdefault(packed[i : i + width], len(number)) for i in range(0, len(packed), width)], np.int64
        )

    def new(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each row, and the index of the first occurrence of each new row."""
        before = len(self)
        numbers = self.number(rows)
        unique, first = np.unique(numbers, return_index=True)
        return numbers, first[unique >= before]


class Tree:
    """Words as paths in a tree that grows level by level; node 0 is the empty word.

    >>> tree = Tree()
    >>> a, b = tree.grow(np.array([0, 0]), np.array([7, 8]))
    >>> tree.word(tree.grow(np.array([b]), np.array([9]))[0]).tolist()
    [8, 9]
    """

    def __init__(self) -> None:
        self._first = [0]  # the number of the first node of each level
        self._levels = [(np.array([-1]), np.array([-1]))]

    def __len__(self) -> int:
        return self._first[-1] + len(self._levels[-1][0])

    def grow(self, parents: np.ndarray, letters: np.ndarray) -> np.ndarray:
        """Add a level, each node one letter after its parent, and return the numbers of its nodes."""
        self._first.append(len(self))
        self._levels.append((parents, letters))
        return self._first[-1] + np.arange(len(parents))

    def word(self, node: int) -> np.ndarray:
        """Return the letters from the root to a node: int64 (T,)."""
        word: list[int] = []
        while node > 0:
            # Nodes are numbered level by level, so a binary search finds the level of a node.
            level = bisect_right(self._first, node) - 1
            parents, letters = self._levels[level]
            place = node - self._first[level]
            word.append(int(letters[place]))
            node = int(parents[place])
        return np.array(word[::-1], np.int64)


@dataclass(frozen=True, eq=False)
class FrontierSuccessors(Generic[S, R]):
    """The M one-letter extensions of a frontier's words; those of one word are adjacent.

    Args:
        states: the states of the M words.
        read: their outputs.
        parents: int64 (M,), the word of the frontier that each extends.
        letters: int64 (M,), their last letters.
    """

    states: S
    read: R
    parents: np.ndarray
    letters: np.ndarray


class WordFrontier(Generic[S, R]):
    """The words of one length that a search extends, initially the empty word.

    Attributes:
        states: the system's states after the words.
        tags: int64 (N,), a number for each word; states with different tags are different.
        length: the length of the words.
        letters: the number of steps of the system.
    """

    def __init__(self, system: TransitionSystem[S, R], tag: int) -> None:
        self._system, self._tree, self._interner = system, Tree(), Interner()
        self.states, self.tags = system.start(), np.array([tag])
        self._nodes = np.array([0])
        self._interner.number(tagged(system.rows(self.states), self.tags))
        self.length = self.letters = 0

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def seen(self) -> int:
        """The number of different states, tags included, that the search has reached."""
        return len(self._interner)

    def fan(self, live: np.ndarray) -> FrontierSuccessors[S, R]:
        """Return the extension of the frontier by the live letters: bool (N, |Σ|)."""
        read, states = self._system.fan(self.states, live)
        parents, letters = np.nonzero(live)
        self.letters += len(parents)
        return FrontierSuccessors(states, read, parents, letters)

    def word(self, ahead: FrontierSuccessors[S, R], place: int) -> np.ndarray:
        """Return the extended word at index `place`: int64 (length + 1,)."""
        return np.append(self._tree.word(int(self._nodes[ahead.parents[place]])), ahead.letters[place])

    def keep(self, ahead: FrontierSuccessors[S, R], tags: np.ndarray, places: np.ndarray) -> None:
        """Continue with the extended words at these indices, given the tags (M,) of all."""
        self._nodes = self._tree.grow(self._nodes[ahead.parents[places]], ahead.letters[places])
        self.states, self.tags = self._system.pick(ahead.states, places), tags[places]
        self.length += 1

    def keep_new(self, ahead: FrontierSuccessors[S, R], tags: np.ndarray) -> np.ndarray:
        """Continue with the first word to each new state, and return the numbers of all extended states, (M,)."""
        numbers, new = self._interner.new(tagged(self._system.rows(ahead.states), tags))
        self.keep(ahead, tags, new)
        return numbers


def tagged(rows: np.ndarray, tags: np.ndarray) -> np.ndarray:
    """Return states as bytes with their tags appended: uint8 (N, D), (N,) -> (N, D + 8)."""
    numbers = np.ascontiguousarray(tags, np.int64).view(np.uint8).reshape(-1, 8)
    return np.concatenate([rows, numbers], axis=1)
