"""What each family forces: pairs of words whose linear parts agree in every layer of it (docs/theory.md §4).

A layer x ↦ A_a x + v_a represents a machine by one vector x_q a state. The linear parts act on differences x_p − x_q
only, and there they satisfy the identities below, whatever the layer. T3: these identities are all that matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

Power = Literal["square", "cube", "cycle"]
RunLengthWord = tuple[tuple[int, int], ...]  # (letter number, repetitions)


@dataclass(frozen=True)
class Family:
    """A family of linear recurrent layers, by the form of A.

    Args:
        name: as `families.represent` takes it.
        description: the form of A, and published layers that have it.
        same_length: words of equal length have equal linear parts (A does not depend on the input); otherwise
            rearrangements of a word do (the A commute).
        differences_commute: the A_a − A_b commute, being diagonal (Liquid-S4 with dense A), and nothing else is known.
        power: A_a² = A_a, A_a³ = A_a, or A_a^{L+1} = A_a with L the lcm of a's cycle lengths; None if nothing is known.
    """

    name: str
    description: str
    same_length: bool
    power: Power | None
    differences_commute: bool = False


FORCED: dict[str, Family] = {
    family.name: family
    for family in (
        Family("lti", "input-independent, dense A: S4 and any linear time-invariant layer", True, None),
        Family("lti-diagonalisable", "input-independent, diagonalisable A: S4D, S5, LRU", True, "cycle"),
        Family("diagonal[0,1]", "input-dependent diagonal A with entries in [0, 1]: Mamba, RWKV", False, "square"),
        Family("diagonal[-1,1]", "input-dependent diagonal A with entries in [-1, 1]", False, "cube"),
        Family("diagonal-complex", "input-dependent diagonal A with complex entries", False, "cycle"),
    )
}  # fmt: skip


# Liquid-S4 with dense A is not decided by its identities: they refute, and T6 represents.
DENSE_LIQUID = Family("liquid-s4", "A + diag(Bu) with dense A", False, None, differences_commute=True)


@dataclass(frozen=True)
class Identity:
    """Words whose linear parts, with signs, add up to zero: A_u − A_u' = 0, or a commutator of differences.

    Args:
        words: u and u', or the six words of `commutator`.
        maps: the maps δ(·, word) that they induce, int64, shape (n,).
        signs: 1 or −1 for each.
    """

    words: tuple[RunLengthWord, ...]
    maps: tuple[np.ndarray, ...]
    signs: tuple[int, ...] = (1, -1)


def identities(family: Family, delta: np.ndarray) -> Iterator[Identity]:
    """Identities that generate all that the family forces on a machine with the table `delta` (|Σ|, n).

    Letters that act alike give the same maps; one of each kind is taken.
    """
    _, kept = np.unique(delta, axis=0, return_index=True)
    letters = sorted(int(a) for a in kept)
    if family.differences_commute:
        yield from (commutator(a, b, letters[0], delta) for i, a in enumerate(letters[1:]) for b in letters[1:][:i])
        return
    for i, a in enumerate(letters):
        for b in letters[i + 1 :]:
            if not family.same_length:
                yield Identity((((a, 1), (b, 1)), ((b, 1), (a, 1))), (delta[b][delta[a]], delta[a][delta[b]]))
            elif i == 0:  # A_a = A_b and A_a = A_c give A_b = A_c
                yield Identity((((a, 1),), ((b, 1),)), (delta[a], delta[b]))
        if family.power is not None:
            high = exponent(family.power, delta[a])
            yield Identity((((a, high),), ((a, 1),)), (power_of(delta[a], high), delta[a]))


def commutator(a: int, b: int, c: int, delta: np.ndarray) -> Identity:
    """(A_a − A_c)(A_b − A_c) − (A_b − A_c)(A_a − A_c) = 0, multiplied out; words are read from the left."""
    pairs = ((b, a), (c, a), (b, c), (a, b), (c, b), (a, c))
    words = tuple(((first, 1), (second, 1)) for first, second in pairs)
    return Identity(words, tuple(delta[second][delta[first]] for first, second in pairs), (1, -1, -1, -1, 1, 1))


def exponent(power: Power, step: np.ndarray) -> int:
    """The k with A_a^k = A_a: 2, 3, or 1 + the lcm of the cycle lengths of a letter's map."""
    return {"square": 2, "cube": 3}.get(power) or 1 + math.lcm(*cycle_lengths(step))


def cycle_lengths(step: np.ndarray) -> list[int]:
    """The distinct lengths of the cycles of a map on 0 … n−1, in increasing order."""
    seen, lengths = np.zeros(len(step), np.int64), set[int]()
    for q in range(len(step)):
        path, p = [], q
        while not seen[p]:
            seen[p] = q + 1
            path.append(p)
            p = int(step[p])
        if seen[p] == q + 1 and p in path:
            lengths.add(len(path) - path.index(p))
    return sorted(lengths)


def power_of(step: np.ndarray, k: int) -> np.ndarray:
    """The k-th iterate of a map, by squaring."""
    image = np.arange(len(step))
    while k:
        if k & 1:
            image = step[image]
        step, k = step[step], k >> 1
    return image
