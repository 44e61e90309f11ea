"""Generate the identities that a family forces: words whose linear parts agree in all its layers (docs/theory.md §4).

A layer x ↦ A_a x + v_a represents a machine by one vector x_q per state. In every layer of the family, the linear parts
satisfy these identities on the differences x_p − x_q. T3: they decide representability.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsa2lrnn.errors import UnsupportedFormat

RunLengthWord = tuple[tuple[int, int], ...]  # (letter number, repetitions)
MAX_WORDS = 1_000  # words whose powers are compared for paracontracting matrices
MAX_IDEMPOTENTS = 100  # idempotents that are compared for contracting matrices

LETTERS = ("input-independent", "commuting", "commuting-differences", "contracting", "paracontracting", "any")
# The k with A^k = A, and the orders of the eigenvalues but 0; with complex ones both depend on a letter's cycles.
EIGENVALUES = {"[0,1]": (2, [1]), "[-1,1]": (3, [1, 2]), "complex": (None, None), None: (None, None)}


@dataclass(frozen=True)
class Family:
    """The family of all layers x -> A_a x + v_a whose matrices have the stated properties, of any width, with any v_a.

    Args:
        letters: the relation between the matrices of letters: "input-independent" (all A_a are equal), "commuting",
            "commuting-differences" (the A_a - A_b commute), "contracting" (in one Euclidean norm, no A_a makes a vector
            longer), "paracontracting" (and each A_a makes every vector that it does not fix shorter), or "any".
        eigenvalues: the range of the eigenvalues of each A_a, which is diagonalisable: "[0,1]", "[-1,1]" or "complex".
            None if the A_a need not be diagonalisable.

    Raises `UnsupportedFormat` for an unknown or no property, or for eigenvalues of (para)contracting matrices.

    >>> Family("commuting", "[0,1]").name, Family("any", "[-1,1]").name
    ('diagonal[0,1]', 'matrices(any, [-1,1])')
    """

    letters: str
    eigenvalues: str | None = None

    def __post_init__(self) -> None:
        for name, choices in (("letters", LETTERS), ("eigenvalues", tuple(EIGENVALUES))):
            if (value := getattr(self, name)) not in choices:
                raise UnsupportedFormat(f"{name}={value!r}: choose one of {', '.join(map(repr, choices))}")
        if (self.letters, self.eigenvalues) == ("any", None):
            raise UnsupportedFormat("a family without any property represents every machine: state a property")
        if self.letters.endswith("contracting") and self.eigenvalues is not None:
            raise UnsupportedFormat(
                f"letters={self.letters!r} with eigenvalues={self.eigenvalues!r} is not decided: leave it out, "
                "or pass Family('commuting', '[0,1]') if the matrices commute"
            )

    @property
    def name(self) -> str:
        """The name in verdicts and certificates: a key of `FORCED`, or the two properties."""
        names = (name for name, form in FORCED.items() if form == self)
        return next(names, f"matrices({self.letters}, {self.eigenvalues or 'any'})")


FORCED: dict[str, Family] = {
    "lti": Family("input-independent"),
    "lti-diagonalisable": Family("input-independent", "complex"),
    "diagonal[0,1]": Family("commuting", "[0,1]"),
    "diagonal[-1,1]": Family("commuting", "[-1,1]"),
    "diagonal-complex": Family("commuting", "complex"),
}


@dataclass(frozen=True)
class Identity:
    """An equation between linear parts of words: A_u − A_u' = 0, or a commutator of differences.

    Args:
        words: u and u', or the six words of `commutator`.
        maps: the map δ(·, w) of each word, int64, shape (n,).
        signs: the sign of each word, 1 or −1.
    """

    words: tuple[RunLengthWord, ...]
    maps: tuple[np.ndarray, ...]
    signs: tuple[int, ...] = (1, -1)


def identities(family: Family, delta: np.ndarray) -> Iterator[Identity]:
    """Yield identities that generate all those that a family forces on a table (|Σ|, n), up to the limits on words.

    Of letters with equal maps, only the first is used.
    """
    _, first_of_kind = np.unique(delta, axis=0, return_index=True)
    letters = sorted(int(a) for a in first_of_kind)
    if family.letters == "commuting-differences":
        yield from (commutator(a, b, letters[0], delta) for i, a in enumerate(letters[1:]) for b in letters[1:][:i])
    if family.letters == "paracontracting":
        yield from _of_projections(letters, delta)
    if family.letters == "contracting":
        yield from _of_contractions(letters, delta)
    for i, a in enumerate(letters):
        for b in letters[i + 1 :]:
            if family.letters == "commuting":
                yield _identity(((a, 1), (b, 1)), ((b, 1), (a, 1)), delta)
            elif family.letters == "input-independent" and i == 0:  # A_a = A_b and A_a = A_c give A_b = A_c
                yield _identity(((a, 1),), ((b, 1),), delta)
        if family.eigenvalues is not None:
            yield _identity(((a, exponent(family.eigenvalues, delta[a])),), ((a, 1),), delta)


def _identity(u: RunLengthWord, other: RunLengthWord, delta: np.ndarray) -> Identity:
    maps = [np.arange(delta.shape[1])] * 2
    for i, word in enumerate((u, other)):
        for a, repetitions in word:
            maps[i] = power_of(delta[a], repetitions)[maps[i]]
    return Identity((u, other), (maps[0], maps[1]))


def _of_projections(letters: list[int], delta: np.ndarray) -> Iterator[Identity]:
    """Yield the identities of T54: for N = n − 1, w^N and w^{N+1} equal the product of the a^N, a in w, in any order.

    There is one word w for each map and set of letters, shortest first, up to `MAX_WORDS`.
    """
    N = delta.shape[1] - 1
    for a, b in itertools.combinations(letters, 2):
        yield _identity(((a, N), (b, N)), ((b, N), (a, N)), delta)
    for word, content in _words(letters, delta, lambda word: frozenset(b for b, _ in word)):
        for k in (N, N + 1):
            yield _identity(word * k, tuple((b, N) for b in sorted(content)), delta)


def _of_contractions(letters: list[int], delta: np.ndarray) -> Iterator[Identity]:
    """Yield the identities of T58: words that act as idempotents commute."""
    maps = ((word, _identity(word, (), delta).maps[0]) for word, _ in _words(letters, delta, lambda _: None))
    idempotents = [word for word, step in maps if np.array_equal(step[step], step)][:MAX_IDEMPOTENTS]
    for e, f in itertools.combinations(idempotents, 2):
        identity = _identity(e + f, f + e, delta)
        if (identity.maps[0] != identity.maps[1]).any():
            yield identity


def _words(
    letters: list[int], delta: np.ndarray, summary: Callable[[RunLengthWord], Hashable]
) -> Iterator[tuple[RunLengthWord, Any]]:
    """Yield a shortest word for each pair of map and summary, with the summary, at most `MAX_WORDS`."""
    queue, visited = deque[RunLengthWord]([()]), set[tuple[bytes, Hashable]]()
    while queue:
        word = queue.popleft()
        for a in letters:
            longer = (*word, (a, 1))
            key = _identity(longer, (), delta).maps[0].tobytes(), summary(longer)
            if key not in visited and len(visited) < MAX_WORDS:
                visited.add(key)
                queue.append(longer)
                yield longer, key[1]


def commutator(a: int, b: int, c: int, delta: np.ndarray) -> Identity:
    """Return the identity (A_a − A_c)(A_b − A_c) = (A_b − A_c)(A_a − A_c), expanded into six words."""
    # The words are in reading order, so (b, a) is the matrix product A_a A_b; the terms with A_c A_c cancel.
    pairs = ((b, a), (c, a), (b, c), (a, b), (c, b), (a, c))
    words = tuple(((first, 1), (second, 1)) for first, second in pairs)
    return Identity(words, tuple(delta[second][delta[first]] for first, second in pairs), (1, -1, -1, -1, 1, 1))


def exponent(eigenvalues: str, step: np.ndarray) -> int:
    """Return a k with A_a^k = A_a for a letter's map, int (n,): 2, 3, or 1 + the lcm of the map's cycle lengths."""
    return EIGENVALUES[eigenvalues][0] or 1 + math.lcm(*cycle_lengths(step))


def cycle_lengths(step: np.ndarray) -> list[int]:
    """Return the distinct lengths of the cycles of a map on 0 … n−1, in increasing order."""
    visited, lengths = np.zeros(len(step), np.int64), set[int]()
    for q in range(len(step)):
        path, p = [], q
        while not visited[p]:
            visited[p] = q + 1
            path.append(p)
            p = int(step[p])
        # `visited` holds the number of the walk plus one: only a state of this very walk closes a new cycle.
        if visited[p] == q + 1 and p in path:
            lengths.add(len(path) - path.index(p))
    return sorted(lengths)


def power_of(step: np.ndarray, k: int) -> np.ndarray:
    """Return the k-th iterate of a map, int (n,), by repeated squaring."""
    image = np.arange(len(step))
    while k:
        if k & 1:
            image = step[image]
        step, k = step[step], k >> 1
    return image
