"""Represent machines by products of factors I − β k kᵀ, as in DeltaNet (one per letter) and DeltaProduct (T7).

A transposition of x and y is I − k kᵀ with k = e_x − e_y: a reflection, β‖k‖² = 2. A permutation needs rank(P − I) =
n − #cycles of them and no fewer. A reset erases every direction, ∏ (I − e_i e_iᵀ) = 0, and writes v = e_q: n factors.
All entries are small integers, so the products are exact in floating point. A sink, which no letter leaves, may have
the vector 0 if letters are otherwise one to one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any, ClassVar

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.families.family_answers import CertifiedAnswer, Unknown, certificate_header
from fsa2lrnn.families.permutation_groups import PermutationGroup, group_of, subgroups

MAX_ORDER = 200
MAX_SUBGROUPS = 3_000
_TOGETHER = 3  # kinds of cosets at once
_KINDS = 40


@dataclass(frozen=True, eq=False)
class Points:
    """A set of points that letters permute, with one integer vector over the points per state.

    Args:
        moves: the image of each point under each letter, int64 (m, d).
        vectors: the vector of each state, int64 (n, d).
    """

    moves: np.ndarray
    vectors: np.ndarray

    @property
    def factors(self) -> np.ndarray:
        """The number of factors (transpositions) of each letter, d − #cycles: int64 (m,)."""
        return np.array([len(transpositions(row)) for row in self.moves], np.int64)

    @property
    def tells_all_apart(self) -> bool:
        """Whether the vectors of all states are distinct."""
        return len(np.unique(self.vectors, axis=0)) == len(self.vectors)


def fewest_points(permutations: np.ndarray, with_resets: bool) -> Points | None:
    """Return the points on which permutations (m, n) need the fewest factors: cosets of up to three subgroups (T7).

    The points are cosets of subgroups, and letters permute them. The vector x_{δ(q,a)} has at the image of a point the
    value of x_q at the point. So the value of x_q at the coset Hx is a function of the orbit of q x⁻¹ under H; if all
    orbits get different values, the points separate as many states as possible. S₄ has 24 states and needs 4 points.

    `with_resets`: whether the machine also has a constant letter, which takes one factor per point. The result is None
    if the group has more than 200 elements or 3,000 subgroups, or no such points separate all states.

    >>> from fsa2lrnn.automata import zoo
    >>> points = fewest_points(zoo.group("S4").delta, False)
    >>> points.vectors.shape, int(points.factors.max())
    ((24, 4), 3)
    """
    if not len(permutations) or (listed := group_of(permutations, MAX_ORDER)) is None:
        return None
    group, elements = listed
    if (masks := subgroups(group, MAX_SUBGROUPS)) is None:
        return None
    number = {row.tobytes(): i for i, row in enumerate(elements)}
    letters = [number[np.ascontiguousarray(row, np.int64).tobytes()] for row in permutations]
    kinds: dict[tuple[bytes, bytes], tuple[np.ndarray, Points]] = {}
    for mask in sorted(masks, key=lambda mask: -int(mask.sum())):
        points = _on_cosets(group, elements, letters, mask)
        classes = np.unique(points.vectors, axis=0, return_inverse=True)[1].astype(np.int64)
        # Points of equal costs that separate the same states are interchangeable: one set of each kind is kept.
        needed = np.append(points.factors, points.moves.shape[1])  # of each letter, and of all points
        kinds.setdefault((needed.tobytes(), classes.tobytes()), (needed, points))

    def cost(several: tuple[tuple[np.ndarray, Points], ...]) -> tuple[int, int]:
        # Factors of disjoint sets of points add up; a reset erases all d points, one factor each.
        *letters, d = np.sum([needed for needed, _ in several], axis=0).tolist()
        return max([d * with_resets, *letters]), d

    best: tuple[tuple[int, int], Points] | None = None
    chosen = sorted(kinds.values(), key=lambda kind: cost((kind,)))[:_KINDS]
    for count in range(1, _TOGETHER + 1):
        for several in combinations(chosen, count):
            if best is None or cost(several) < best[0]:
                points = _disjoint_union([points for _, points in several])
                if points.tells_all_apart:
                    best = cost(several), points
    return None if best is None else best[1]


def _on_cosets(group: PermutationGroup, elements: np.ndarray, letters: list[int], mask: np.ndarray) -> Points:
    members = np.flatnonzero(mask)
    # The least element of a coset Hx names it: `table[members][:, x]` are the products h·x.
    least = group.table[members].min(0)  # of Hx, for each x
    chosen, coset = np.unique(least, return_inverse=True)
    # The least state of an orbit names it: `elements[members][:, q]` are the images of q under H.
    orbit = np.unique(elements[members].min(0), return_inverse=True)[1]  # of each state under H
    back = elements[group.inverse[chosen]]  # (d, n), q x⁻¹
    return Points(np.stack([coset[group.table[chosen, a]] for a in letters]).astype(np.int64), orbit[back].T)


def _disjoint_union(several: list[Points]) -> Points:
    starts = np.cumsum([0, *(points.moves.shape[1] for points in several)])
    moves = [points.moves + start for points, start in zip(several, starts[:-1], strict=True)]
    return Points(np.concatenate(moves, 1), np.concatenate([points.vectors for points in several], 1))


def transpositions(permutation: np.ndarray) -> list[tuple[int, int]]:
    """Return n − #cycles transpositions whose product, in the order of application, is the permutation (n,).

    >>> transpositions(np.array([1, 2, 0, 3]))
    [(0, 1), (0, 2)]
    """
    factors: list[tuple[int, int]] = []
    visited: set[int] = set()
    for q in range(len(permutation)):
        cycle: list[int] = []
        while q not in visited:
            visited.add(q)
            cycle.append(q)
            q = int(permutation[q])
        # (c_0 c_1), (c_0 c_2), …, applied in this order, move c_i to c_{i+1} and the last back to c_0.
        factors += [(cycle[0], other) for other in cycle[1:]]
    return factors


def sink_of(delta: np.ndarray) -> int | None:
    """Return a state s that no letter leaves, if all letters are one to one on states not mapped to s, else None."""
    for s in range(delta.shape[1]):
        if all(row[s] == s and len(np.unique(row[row != s])) == np.count_nonzero(row != s) for row in delta):
            return s
    return None


def paths(row: np.ndarray, sink: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return the maximal chains of states that a letter's map (n,) leads to a sink, and its cycles of two or more.

    >>> paths(np.array([1, 3, 2, 3, 5, 4]), 3)
    ([[0, 1]], [[4, 5]])
    """
    sources = set(row.tolist())
    # A state without predecessor starts a chain; letters are one to one off the sink, so chains are disjoint.
    chains, visited = list[list[int]](), {sink}
    for q in range(len(row)):
        if q not in sources and q != sink:
            chain = [q]
            while row[chain[-1]] != sink:
                chain.append(int(row[chain[-1]]))
            chains.append(chain)
            visited.update(chain)
    cycles: list[list[int]] = []
    for q in range(len(row)):
        if q not in visited:
            cycle = [q]
            while row[cycle[-1]] != q:
                cycle.append(int(row[cycle[-1]]))
            visited.update(cycle)
            if len(cycle) > 1:
                cycles.append(cycle)
    return chains, cycles


def sink_keys(row: np.ndarray, sink: int) -> list[tuple[int, ...]]:
    """Return the keys of a letter's factors I − k kᵀ, in order, with the sink at 0 and other states at unit vectors."""
    n, factors = len(row), list[tuple[int, ...]]()
    chains, cycles = paths(row, sink)
    # The last state of a chain goes to the sink, the zero vector: a projection erases its axis first.
    for chain in chains:
        factors.append(tuple(int(q == chain[-1]) for q in range(n)))
    # A chain is then moved like a cycle: its last axis is empty by now, so the first state's axis ends up empty.
    for cycle in (*chains, *cycles):
        factors += [tuple((q == cycle[0]) - (q == other) for q in range(n)) for _, other in pairwise(cycle)]
    return factors


BUDGET = 20.0  # seconds


@dataclass(frozen=True)
class HouseholderWitness(CertifiedAnswer):
    """A layer of products of factors I − β k kᵀ that represents the machine.

    Args:
        keys: the keys k of each letter in the order of application, integer vectors of length d.
        shifts: the vector added after the factors of each letter: zero, or x_q for a reset to q.
        sink: a state with the vector 0, which no letter leaves, if other states have unit vectors.
        at: the integer vector x_q of each state; empty for unit vectors, x_q = e_q and d = n.
        rates: the β of each key; empty if all are 1.
    """

    answer: ClassVar[str] = "yes"
    keys: tuple[tuple[tuple[int, ...], ...], ...]
    shifts: tuple[tuple[int, ...], ...]
    sink: int | None = None
    at: tuple[tuple[int, ...], ...] = ()
    rates: tuple[tuple[Fraction, ...], ...] = ()

    @property
    def dimension(self) -> int:
        """The dimension d of the vectors."""
        return len(self.vectors[0])

    @property
    def vectors(self) -> tuple[tuple[int, ...], ...]:
        """The vector x_q of each state."""
        n = self.machine.n_states
        return self.at or tuple((0,) * n if q == self.sink else _unit(n, q) for q in range(n))

    @property
    def n_factors(self) -> int:
        """The largest number n_h of factors of a letter."""
        return max(len(keys) for keys in self.keys)

    def explain(self) -> str:
        return f"{self.n_factors} Householder factors per letter at most, in {self.dimension} dimensions."

    def to_json(self) -> dict[str, Any]:
        return {
            **certificate_header(self.machine, self.family, "representable"),
            "keys": [[list(key) for key in keys] for keys in self.keys],
            "shifts": [list(shift) for shift in self.shifts],
            **({} if self.sink is None else {"sink": self.sink}),
            **({"vectors": [list(vector) for vector in self.at]} if self.at else {}),
            **({"rates": [[str(rate) for rate in rates] for rates in self.rates]} if self.rates else {}),
        }


def householder(
    machine: MooreMachine, most: int | None = None, budget: float | Deadline = BUDGET
) -> CertifiedAnswer | Unknown:
    """Decide whether products of Householder factors, at most `most` per letter, represent a minimal machine.

    One-hot coordinates represent permutations and resets and, with a sink at zero, letters that are one to one except
    there; for many groups fewer points suffice. All these have integers. For other coordinates, which may need fewer
    factors, the bounds of T36 are tested within `budget` seconds.
    """
    from fsa2lrnn.families.block_sizes.answers import householder_heads

    family = "householder" if most is None else f"householder({most})"
    simplest = _one_hot(machine)
    if isinstance(simplest, HouseholderWitness) and simplest.sink is None:
        fewer = _on_points(machine)
        if fewer is not None and (fewer.n_factors, fewer.dimension) < (simplest.n_factors, simplest.dimension):
            simplest = fewer
    if isinstance(simplest, HouseholderWitness) and (most is None or simplest.n_factors <= most):
        return simplest
    reason = simplest.reason if isinstance(simplest, Unknown) else "its one-hot coordinates take more"
    return householder_heads(machine, family, most, reason, budget)


def _one_hot(machine: MooreMachine) -> HouseholderWitness | Unknown:
    """Return factors on one-hot vectors of states, or of all but a sink, which is the zero vector.

    Without a sink, letters have to be permutations (products of transpositions, which are reflections) or resets.
    """
    n = machine.n_states
    if n > 1 and (sink := sink_of(machine.delta)) is not None:
        keys = tuple(tuple(sink_keys(row, sink)) for row in machine.delta)
        return HouseholderWitness(machine, "householder", keys, ((0,) * n,) * len(machine.delta), sink)
    for letter, row in zip(machine.alphabet, machine.delta, strict=True):
        if len(np.unique(row)) not in (1, n):
            return Unknown(machine, "householder", f"letter {letter!r} is neither a permutation nor a reset")
    moves = [row for row in machine.delta if not _is_reset(row)]
    return replace(_exchanges(machine, np.array(moves), tuple(_unit(n, q) for q in range(n))), at=())


def _on_points(machine: MooreMachine) -> HouseholderWitness | None:
    permuting = [row for row in machine.delta if not _is_reset(row)]
    points = fewest_points(np.array(permuting).reshape(-1, machine.n_states), len(permuting) < len(machine.delta))
    return points and _exchanges(machine, points.moves, tuple(map(tuple, points.vectors.tolist())))


def _exchanges(machine: MooreMachine, moves: np.ndarray, at: tuple[tuple[int, ...], ...]) -> HouseholderWitness:
    """Return a witness with states at `at`: moves are transpositions of axes, resets erase all and add a vector.

    `moves` has, for each letter that is not a reset, the permutation of the d axes by which it acts.
    """
    d, rest = len(at[0]), iter(moves)
    keys: list[tuple[tuple[int, ...], ...]] = []
    shifts: list[tuple[int, ...]] = []
    for row in machine.delta:
        if _is_reset(row):
            keys.append(tuple(_unit(d, i) for i in range(d)))
            # A reset erases all d axes and then writes the vector of its state.
            shifts.append(at[int(row[0])])
        else:
            keys.append(tuple(_difference(d, x, y) for x, y in transpositions(next(rest))))
            shifts.append((0,) * d)
    return HouseholderWitness(machine, "householder", tuple(keys), tuple(shifts), at=at)


def _is_reset(row: np.ndarray) -> bool:
    return len(row) > 1 and len(np.unique(row)) == 1


def _unit(n: int, q: int) -> tuple[int, ...]:
    return tuple(int(i == q) for i in range(n))


def _difference(n: int, x: int, y: int) -> tuple[int, ...]:
    return tuple(int(i == x) - int(i == y) for i in range(n))
