"""Breadth first: what words lead to, a level at a time, each state once and with a shortest word to it.

Nothing here knows of machines or verdicts. A system says how its states are stepped; `extract` walks them by
themselves, `fsa2lrnn.verification.walk` jointly with the states of a machine.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

S = TypeVar("S")  # some states side by side
R = TypeVar("R", covariant=True)  # what is read off after a letter: output numbers, logits


class TransitionSystem(Protocol[S, R]):
    """What is walked."""

    def start(self) -> S:
        """The state before the first letter, as one."""
        ...

    def fan(self, states: S, live: np.ndarray) -> tuple[R, S]:
        """What single letters give and lead to: N states, bool (N, |Σ|) of M letters to read -> of each M.

        The letters after one state stand together, in order.
        """
        ...

    def pick(self, states: S, places: np.ndarray) -> S:
        """The states at these places."""
        ...

    def rows(self, states: S) -> np.ndarray:
        """The states as rows of bytes, equal only where everything that follows is: uint8 (N, D)."""
        ...


class Interner:
    """Numbers rows of bytes in the order they are first seen."""

    def __init__(self) -> None:
        self._number: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._number)

    def number(self, rows: np.ndarray) -> np.ndarray:
        """The number of each row, new ones in order of appearance: uint8 (N, D) -> int64 (N,)."""
        number, packed = self._number, rows.tobytes()
        width = rows.shape[1]
        return np.array(
            [number.setdefault(packed[i : i + width], len(number)) for i in range(0, len(packed), width)], np.int64
        )

    def new(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each row, and the places of those never seen before, each once."""
        before = len(self)
        numbers = self.number(rows)
        found, first = np.unique(numbers, return_index=True)
        return numbers, first[found >= before]


class Tree:
    """Words as paths in a tree that grows by a level at a time; node 0 is the empty word.

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
        """A new level, each node one letter after its parent: the numbers of its nodes."""
        self._first.append(len(self))
        self._levels.append((parents, letters))
        return self._first[-1] + np.arange(len(parents))

    def word(self, node: int) -> np.ndarray:
        """The letters from the root to a node: int64 (T,)."""
        word: list[int] = []
        while node > 0:
            level = bisect_right(self._first, node) - 1
            parents, letters = self._levels[level]
            place = node - self._first[level]
            word.append(int(letters[place]))
            node = int(parents[place])
        return np.array(word[::-1], np.int64)


@dataclass(frozen=True, eq=False)
class FrontierSuccessors(Generic[S, R]):
    """What single letters make of a frontier: M words, those of one parent side by side.

    Args:
        states: what they lead to.
        read: what was read off.
        parents: int64 (M,), which word of the frontier went before.
        letters: int64 (M,).
    """

    states: S
    read: R
    parents: np.ndarray
    letters: np.ndarray


class WordFrontier(Generic[S, R]):
    """The words of one length that a search holds on to: the empty one, until the first letter.

    Attributes:
        states: what they lead to in the system.
        tags: int64 (N,), a number to each, which belongs to what is told apart.
        length: of the words.
        letters: steps that the system has taken.
    """

    def __init__(self, system: TransitionSystem[S, R], tag: int) -> None:
        self._system, self._tree, self._seen = system, Tree(), Interner()
        self.states, self.tags = system.start(), np.array([tag])
        self._nodes = np.array([0])
        self._seen.number(tagged(system.rows(self.states), self.tags))
        self.length = self.letters = 0

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def seen(self) -> int:
        """How many different states, tags included, were met on the way."""
        return len(self._seen)

    def fan(self, live: np.ndarray) -> FrontierSuccessors[S, R]:
        """One letter further, those that are live: bool (N, |Σ|)."""
        read, states = self._system.fan(self.states, live)
        parents, letters = np.nonzero(live)
        self.letters += len(parents)
        return FrontierSuccessors(states, read, parents, letters)

    def word(self, ahead: FrontierSuccessors[S, R], place: int) -> np.ndarray:
        """The word ahead at a place: int64 (length + 1,)."""
        return np.append(self._tree.word(int(self._nodes[ahead.parents[place]])), ahead.letters[place])

    def keep(self, ahead: FrontierSuccessors[S, R], tags: np.ndarray, places: np.ndarray) -> None:
        """Go on with the words ahead at these places, of all their tags (M,)."""
        self._nodes = self._tree.grow(self._nodes[ahead.parents[places]], ahead.letters[places])
        self.states, self.tags = self._system.pick(ahead.states, places), tags[places]
        self.length += 1

    def keep_new(self, ahead: FrontierSuccessors[S, R], tags: np.ndarray) -> np.ndarray:
        """Go on with the first word to each state never met before: the numbers of all states ahead, (M,)."""
        numbers, new = self._seen.new(tagged(self._system.rows(ahead.states), tags))
        self.keep(ahead, tags, new)
        return numbers


def tagged(rows: np.ndarray, tags: np.ndarray) -> np.ndarray:
    """States as bytes, each with a number: uint8 (N, D), (N,) -> (N, D + 8)."""
    numbers = np.ascontiguousarray(tags, np.int64).view(np.uint8).reshape(-1, 8)
    return np.concatenate([rows, numbers], axis=1)
