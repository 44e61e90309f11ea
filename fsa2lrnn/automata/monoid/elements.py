"""Enumerate the transition monoid of a machine (the maps of states by words), or only the images of these maps.

For an image X let G_X be the group of the permutations of X by the words that lead X to X. A subgroup of the monoid
with identity e acts faithfully on the image of e, so it embeds in the group of this image; conversely G_X is a quotient
of a subgroup of the monoid. Hence the monoid is aperiodic if and only if every G_X is trivial, and its groups are
solvable if and only if every G_X is. There are at most 2ⁿ images, often far fewer, but up to nⁿ elements. Images in one
strongly connected component have isomorphic groups, so one per component suffices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.facts import Action, Letters
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat

MAX_BYTES = 1 << 26  # for the maps and the Cayley graph; their construction needs three times as much


_PIECE = 1 << 20  # entries of generators that are computed at a time


@dataclass(frozen=True, eq=False)
class TransitionMonoid:
    """The maps of states by words, the identity first, maps by shorter words before those by longer ones.

    Args:
        action: the maps of the letters.
        elements: the maps, shape (N, n): the word of element i leads state q to `elements[i, q]`.
        origin, letter: element i > 0 is element `origin[i]` followed by letter number `letter[i]`, shape (N,).
        right: the right Cayley graph, shape (N, k): the number of element i followed by a; −1 where not computed.
        whole: whether these are all elements; if not, they are the first `cap`.
        cap: the largest number of elements to enumerate.
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
        """The number of elements, including the identity."""
        return len(self.elements)

    @property
    def method(self) -> str:
        """The method of an answer that uses all elements, or the limit that was reached."""
        if self.whole:
            return f"by enumeration of the monoid, {self.size:,} elements"
        if self.size < self.cap:
            return f"unknown: time limit, after {self.size:,} elements of the monoid"
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


def enumerate_monoid(action: Action, max_monoid: int) -> TransitionMonoid:
    """Return the transition monoid, with at most `max_monoid` elements and no more than fit in `MAX_BYTES`.

    Raises `UnsupportedFormat` unless `max_monoid` is a whole number of at least 1.

    >>> from fsa2lrnn.automata import zoo
    >>> monoid = enumerate_monoid(Action.of(zoo.ab_star()), max_monoid=100)
    >>> monoid.size, ["".join(monoid.word(i)) for i in range(monoid.size)]
    (6, ['', 'a', 'b', 'aa', 'ab', 'ba'])
    """
    cap = allowed(action, max_monoid)
    identity = np.arange(action.n_states).astype(action.letters.dtype)
    return TransitionMonoid(action, *map_kernels.generate(action.letters, identity, False, cap, partial=True), cap)


def allowed(action: Action, limit: int) -> int:
    """Return the number of maps or sets of states that may be stored: `limit`, but no more than fit in `MAX_BYTES`.

    Raises `UnsupportedFormat` unless `limit` is a whole number of at least 1.
    """
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1:  # type: ignore[redundant-expr]
        raise UnsupportedFormat(
            f"max_monoid = {limit!r}, but every monoid has an identity: give a whole number of at least 1"
        )
    k, n = action.letters.shape
    return min(int(limit), max(1, MAX_BYTES // (n * action.letters.itemsize + 8 * k)))


@dataclass(frozen=True, eq=False)
class Images:
    """The images of the set of all states under words, at most `limit`, enumerated breadth first at first use.

    If the current deadline passes then, they are those found so far if `partial`, else there is an `OutOfTime`.

    >>> from fsa2lrnn.automata import zoo
    >>> images = Images(Action.of(zoo.elevator(4)), limit=1_000)
    >>> [images.members(i).tolist() for i in range(5)], images.whole
    ([[0, 1, 2, 3], [1, 2, 3], [0, 1, 2], [2, 3], [0, 1]], True)
    """

    action: Action
    limit: int
    partial: bool = False

    @property
    def cap(self) -> int:
        """The largest number of sets."""
        return allowed(self.action, self.limit)

    @cached_property
    def _enumerated(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
        everything = np.ones(self.action.n_states, self.action.letters.dtype)
        return map_kernels.generate(self.action.letters, everything, True, self.cap, self.partial)

    @property
    def sets(self) -> np.ndarray:
        """The indicators of the images, shape (N, n)."""
        return self._enumerated[0]

    @property
    def graph(self) -> np.ndarray:
        """The number of the set to which each letter leads each set, shape (N, k); −1 where not computed."""
        return self._enumerated[3]

    @property
    def whole(self) -> bool:
        """Whether these are all images."""
        return self._enumerated[4]

    @cached_property
    def component(self) -> np.ndarray:
        """The number of the strongly connected component of each set in the graph, shape (N,)."""
        return map_kernels.components(self.graph)

    @cached_property
    def _transport(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The bijections between the sets of each component: (places, size, root, turns).

        All sets of a component have the same size m. Its first set is the root. A shortest path inside the component
        leads the x-th member of the root, x < m, to `places[i, x]` in set i. `turns[i, a]` is true if letter a leads
        set i to a set of its component, but its members to other places.
        """
        letters, graph, size = self.action.letters, self.graph, np.count_nonzero(self.sets, axis=1)
        inside = (graph >= 0) & (self.component[graph] == self.component[:, None])
        places, root = np.zeros_like(self.sets), np.full(len(graph), -1)
        edges = [np.flatnonzero(row).tolist() for row in inside]
        for first in range(len(graph)):
            if root[first] >= 0:
                continue
            root[first] = first
            places[first, : size[first]] = self.members(first)
            queue = [first]
            for i in queue:
                for a in edges[i]:
                    if root[j := int(graph[i, a])] < 0:
                        root[j] = first
                        places[j, : size[j]] = letters[a, places[i, : size[i]]]
                        queue.append(j)
        used = np.arange(self.action.n_states) < size[:, None]
        # A letter inside a component that keeps the places of all members acts trivially in Schreier's lemma.
        differs = [((row[places] != places[graph[:, a]]) & used).any(axis=1) for a, row in enumerate(letters)]
        return places, size, root, np.stack(differs, axis=1) & inside

    @property
    def method(self) -> str:
        """The method of an answer that uses all images, or the limit that was reached."""
        if self.whole:
            return f"by enumeration of the images, {len(self.sets):,} sets of states"
        if len(self.sets) < self.cap:
            return f"unknown: time limit, after {len(self.sets):,} sets of states"
        return f"capped at {self.cap:,} sets of states"

    def roots(self) -> list[int]:
        """Return the number of the first set of each component whose group is not trivial, large sets first."""
        _, size, root, turns = self._transport
        roots = np.unique(root[turns.any(axis=1)])
        return roots[np.argsort(-size[roots], kind="stable")].tolist()

    def members(self, i: int) -> np.ndarray:
        return np.flatnonzero(self.sets[i])

    def generators(self, root: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Return generators of the group of a root, uint32 (g, m), and the set and letter of each (Schreier's lemma).

        A generator permutes the members 0 … m−1 by the path from the root to the set, the letter, and an inverse path.
        """
        places, size, roots, turns = self._transport
        m = size[root]
        edges = np.argwhere(turns & (roots == root)[:, None])
        first, step = dict[bytes, tuple[int, int]](), max(1, _PIECE // self.action.n_states)
        for piece in np.split(edges, range(step, len(edges), step)):
            targets = self.graph[piece[:, 0], piece[:, 1]]
            # The members of the root, carried to set i and moved by the letter; `back` then takes them to their
            # places in the root.
            moved = self.action.letters[piece[:, 1, None], places[piece[:, 0], :m]]
            # From state places[j, x] back to x.
            back = np.zeros((len(piece), self.action.n_states), np.uint32)
            np.put_along_axis(back, places[targets, :m].astype(np.int64), np.arange(m, dtype=np.uint32)[None], axis=1)
            for row, edge in zip(np.take_along_axis(back, moved.astype(np.int64), axis=1), piece.tolist(), strict=True):
                first.setdefault(row.tobytes(), tuple(edge))
            if len(first) * 4 * int(m) > MAX_BYTES:
                raise BudgetExceeded(f"memory limit: more than {len(first):,} generators of a group on {m:,} states")
        permutations = np.frombuffer(b"".join(first), np.uint32).reshape(len(first), int(m))
        return permutations, list(first.values())

    def words(self, root: int, i: int, a: int) -> list[list[int]]:
        """Return words, as letter numbers, whose permutations of the root generate that of set i and letter a.

        If a leads i to j, these are root → i → j → root and root → j → root, without empty words.
        """
        j = int(self.graph[i, a])
        back = self._path(j, root)
        return [word for word in ([*self._path(root, i), a, *back], [*self._path(root, j), *back]) if word]

    def _path(self, i: int, j: int) -> list[int]:
        return [] if i == j else map_kernels.path(self.graph, i, j).tolist()
