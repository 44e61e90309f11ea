"""The transition monoid of a machine: the enumeration of the maps of states by words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.facts import Action, Letters
from fsa2lrnn.errors import UnsupportedFormat

MAX_BYTES = 1 << 28  # for the maps and the Cayley graph; their construction needs three times as much


@dataclass(frozen=True, eq=False)
class TransitionMonoid:
    """Maps of the states, the identity first, shorter words before longer ones.

    Args:
        action: the letters.
        elements: the maps, shape (N, n): `elements[i, q]` is the state after the word of element i in state q.
        origin, letter: element i > 0 is element `origin[i]` followed by letter number `letter[i]`.
        right: the right Cayley graph, shape (N, k): the number of element i followed by a; −1 where not looked at.
        whole: whether these are all; else they are the first `cap` of more.
        cap: how many elements were allowed.
    """

    action: Action
    elements: np.ndarray
    origin: np.ndarray
    letter: np.ndarray
    right: np.ndarray
    whole: bool
    cap: int

    @property
    def size(self) -> int:
        """The number of elements, identity included."""
        return len(self.elements)

    @property
    def method(self) -> str:
        """The method of an answer that uses all elements, or the limit that was reached."""
        if self.whole:
            return f"by enumeration of the monoid, {self.size:,} elements"
        return f"capped at {self.cap:,} elements of the monoid"

    def numbers(self, i: int) -> tuple[int, ...]:
        """Return a shortest word for element i, as letter numbers."""
        word: list[int] = []
        while i:
            word.append(int(self.letter[i]))
            i = int(self.origin[i])
        return tuple(reversed(word))

    def word(self, i: int) -> Letters:
        """Return a shortest word for element i."""
        return self.action.word(self.numbers(i))

    @cached_property
    def left(self) -> np.ndarray:
        """The left Cayley graph of a whole monoid, shape (N, k): the number of a followed by element i."""
        return map_kernels.left_cayley(self.origin, self.letter, self.right)

    @cached_property
    def l_classes(self) -> np.ndarray:
        """Green's relation L: u L v if each is, as a map, the other with a word put before it."""
        return map_kernels.components(self.left)


def enumerate_monoid(action: Action, max_monoid: int) -> TransitionMonoid:
    """Enumerate the elements breadth first, at most `max_monoid` of them and no more than fit in `MAX_BYTES`.

    Raises `UnsupportedFormat` unless `max_monoid` is a whole number of at least 1.

    >>> from fsa2lrnn.automata import zoo
    >>> monoid = enumerate_monoid(Action.of(zoo.ab_star()), max_monoid=100)
    >>> monoid.size, ["".join(monoid.word(i)) for i in range(monoid.size)]
    (6, ['', 'a', 'b', 'aa', 'ab', 'ba'])
    """
    cap = allowed(action, max_monoid)
    identity = np.arange(action.n_states).astype(action.letters.dtype)
    return TransitionMonoid(action, *map_kernels.generate(action.letters, identity, False, cap), cap)


def allowed(action: Action, limit: int) -> int:
    """Return how many maps or sets of states may be stored: `limit`, or as many as fit in `MAX_BYTES`.

    Raises `UnsupportedFormat` unless `limit` is a whole number of at least 1.
    """
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1:  # type: ignore[redundant-expr]
        raise UnsupportedFormat(
            f"max_monoid = {limit!r}, but every monoid has an identity: give a whole number of at least 1"
        )
    k, n = action.letters.shape
    return min(int(limit), max(1, MAX_BYTES // (n * action.letters.itemsize + 8 * k)))
