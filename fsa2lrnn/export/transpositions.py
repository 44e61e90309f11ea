"""Plan components that move by transpositions between two sets of their points, as heads of a gated delta layer.

Point t has the coordinates 2t and 2t + 1, and the key of the transposition (i j) is ½ on those of i and j. Two such
keys have the product 1, ½ or 0. The roots eᵢ − eⱼ of the group Sₙ have the same products if i is always in a first set
and j in a second one. So these transpositions are reflections I − 2kkᵀ whose keys are dyadic and not negative: a point
of the first set is represented by the vector ½ on its coordinates, a point of the second set by −½.

The start is in the first set and has S = 0. At another point S is the start's vector minus the point's, times 2V. So
a letter writes the value V if it moves the start and 0 if not. Resets have α = 0: β = 0 leads to the start, and the key
of the transposition of the start and a point of the second set leads to that point. A coordinate of a point other than
the start is 0 unless the component is at this point; one head per point reads it, and all heads have the same S.

Components that move otherwise are replaced by covers that move by transpositions, with counters modulo 2ᵏ. A symmetric
transition, repeated, has period 1 or 2, so no such transition rotates three points. A counter makes it possible. Let
the permutation a add δ_a to a counter p modulo N = 2ᵏ, and let y = c(p)·x for some permutations c(0) = 1, c(1) … c(N −
1). Then y moves by c(p + δ_a)·a·c(p)⁻¹, which may be a transposition or the identity although a is not. For example, a
rotation of three points needs N = 2 and c(1) = (1 2), one of five points N = 4. The pairs (p, y) are a cover of the
component, and the bits of p are components of two states.

If no such c is found, a solvable group is split along normal subgroups of prime index: g = rʲ·n with n in the subgroup,
on which a letter acts from the left, by an element that depends on j. The remaining groups are cyclic of prime order,
and all of them have a counter (docs/constructions.md).
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from fsa2lrnn.cascade.cascade import Cascade, Component
from fsa2lrnn.cascade.coordinates import Cover, assemble
from fsa2lrnn.cascade.group_cover import group_cover, regular
from fsa2lrnn.cascade.holonomy import holonomy
from fsa2lrnn.cascade.refine import component_maps, refine
from fsa2lrnn.deadline import check_current
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine
from fsa2lrnn.export.plan import UNIT, Orbit, StageHead


def two_sides(n: int, start: int, pairs: list[tuple[int, int]], targets: list[int]) -> np.ndarray | None:
    """Split n points into two sets: return whether each point is in the second set, bool (n,), or None if impossible.

    Args:
        n: the number of points.
        start: a point of the first set.
        pairs: pairs of points that must be in different sets.
        targets: points of the second set, except for the start.

    >>> two_sides(3, 0, [(0, 1), (1, 2)], []).tolist(), two_sides(3, 0, [(0, 1), (1, 2), (2, 0)], [])
    ([False, True, False], None)
    """
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for i, j in pairs:
        neighbours[i].append(j)
        neighbours[j].append(i)
    # Colouring a graph with two colours, some of them given; an odd cycle or a conflict has no colouring.
    side = {start: False, **{t: True for t in targets if t != start}}
    for first in (*tuple(side), *range(n)):  # first the points whose set is known
        side.setdefault(first, False)
        stack = [first]
        while stack:
            point = stack.pop()
            for other in neighbours[point]:
                if other not in side:
                    side[other] = not side[point]
                    stack.append(other)
                elif side[other] == side[point]:
                    return None
    return np.array([side[point] for point in range(n)])


def moves_by_transpositions(maps: np.ndarray, start: int) -> np.ndarray | None:
    """Return the two sets of `two_sides` if maps, int (L, n), are transpositions between them, resets or the identity.

    The result is None for other maps.

    >>> moves_by_transpositions(np.array([[1, 0, 2], [2, 2, 2]]), 0).tolist()
    [False, True, True]
    """
    identity = np.arange(maps.shape[1])
    constant = (maps == maps[:, :1]).all(axis=1)
    moving = maps[~constant & (maps != identity).any(axis=1)]
    # Exactly two moved points and a permutation: a transposition.
    if ((moving != identity).sum(axis=1) != 2).any() or (np.sort(moving, axis=1) != identity).any():
        return None
    pairs = [(int(i), int(j)) for i, j in (np.flatnonzero(row != identity) for row in moving)]
    return two_sides(len(identity), start, pairs, maps[constant, 0].tolist())


def transposition_heads(maps: np.ndarray, start: int) -> tuple[Orbit, ...]:
    """Return one head for each point but the start; its mark is 0 unless the component is at that point.

    `maps` has the map of each symbol, int (n_symbols, n). Raises `ValueError` unless `moves_by_transpositions` accepts
    it.
    """
    n_symbols, n = maps.shape
    side = moves_by_transpositions(maps, start)
    if side is None:
        raise ValueError(f"maps {maps.tolist()} are not transpositions between two sets: check them beforehand")
    vectors, signs = np.repeat(np.eye(n), 2, axis=1), np.where(side, -1.0, 1.0)
    keys, values = np.zeros((n_symbols, 2 * n)), np.zeros((n_symbols, 1))
    alphas, betas = np.ones(n_symbols), np.zeros(n_symbols)
    for a, row in enumerate(maps):
        moved = np.flatnonzero(row != np.arange(n))
        # A reset erases S by α = 0, and then writes what the transposition of the start and its target would.
        if len(moved) and (row == row[0]).all():
            alphas[a], moved = 0.0, np.array([start, row[0]])
        if len(set(moved)) == 2:
            # Two points have four coordinates of ½, so ‖k‖ = 1 and I − 2kkᵀ is a reflection.
            keys[a], betas[a] = 0.5 * vectors[moved].sum(axis=0), 2.0
            values[a] = UNIT * (start in moved)
    # S at each point: the start's vector minus the point's, with the sign of the point's set.
    differences = UNIT * (vectors[start] - signs[:, None] * vectors)
    states = tuple(difference[:, None] for difference in differences)
    return tuple(
        Orbit(
            StageHead(keys, values, alphas, betas, np.eye(2 * n)[2 * t], np.array([-signs[t]])),
            states,
            maps,
            np.array([[0.0], [-signs[t]]]),
        )
        for t in range(n)
        if t != start
    )


MAX_POINTS = 24  # the most states of a component
_MODULI = (2, 4, 8, 16, 32)
_MAX_ADDITIONS = 40_000  # the most choices of the numbers that letters add to a counter
_MAX_TRIED = 3_000  # the most partial values of c that are tried for one component
_TRIED_EACH = 5  # times N and the number of points: the most that are tried for one choice of the added numbers

Permutation = tuple[int, ...]


def is_register(component: Component) -> bool:
    """Return whether a component only keeps or resets its state."""
    return component.kind in ("reset", "trivial")


def with_transpositions(cascade: Cascade) -> Cascade | None:
    """Return a cascade of the same machine whose components are registers or move by transpositions, or None.

    The result is None if the search finds no such cascade.

    >>> from fsa2lrnn.automata import zoo
    >>> from fsa2lrnn.cascade.decomposition import decompose
    >>> [c.n_states for c in with_transpositions(decompose(zoo.sum_mod(3)).cascade).components]
    [2, 3]
    """
    while True:
        i = next((i for i, component in enumerate(cascade.components) if not _is_held(component)), None)
        if i is None:
            return cascade
        maps, start = component_maps(cascade, i)[0], cascade.components[i].start
        if cascade.components[i].kind == "general":
            cover = holonomy(maps, start)
        else:
            cover = counter_cover(maps, start) or series_cover(maps, start)
        if cover is None:
            return None
        cascade = assemble(cascade.machine, refine(cascade, i, cover))


def _is_held(component: Component) -> bool:
    return is_register(component) or moves_by_transpositions(component.maps, component.start) is not None


def counter_cover(maps: np.ndarray, start: int) -> Cover | None:
    """Return a cover by pairs (p, y) of a component whose maps, int (L, n), are permutations and constants, or None.

    The bits of p are the first coordinates, the lowest bit first, and y is the last. The result is None for other maps,
    for more than `MAX_POINTS` states, or if the search finds no c.
    """
    n, identity = maps.shape[1], tuple(range(maps.shape[1]))
    rows = [tuple(row) for row in maps.tolist()]
    permutations = [row for row in rows if row != identity and len(set(row)) > 1]
    if n > MAX_POINTS or any(len(set(row)) < n for row in permutations):
        return None
    # The inverse of a letter takes the same steps in the opposite direction, so it needs no condition of its own.
    chosen = [a for j, a in enumerate(permutations) if _inverse(a) not in permutations[:j]]
    search = _Search(chosen, start, [row[0] for row in rows if len(set(row)) == 1])
    for modulus in _MODULI:
        for added in _additions(chosen, modulus):
            if search.tried > _MAX_TRIED:
                return None
            if (c := search.find(modulus, added)) is not None:
                adds = {_inverse(a): -d % modulus for a, d in zip(chosen, added, strict=True)}
                adds |= {identity: 0, **dict(zip(chosen, added, strict=True))}
                return _pairs(rows, start, c, adds)
    return None


def _additions(permutations: list[Permutation], modulus: int) -> list[tuple[int, ...]]:
    """Return the choices of the numbers that the permutations add to the counter, choices of small sum first.

    If b is the w-th power of a, b adds w times the number of a. The first odd number is 1, because p can be multiplied
    by any odd number; if all numbers were even, half the modulus would be enough.
    """
    known = dict[Permutation, tuple[int, int]]()  # permutation -> the number of a free one and the exponent of it
    n_free = 0
    for a in permutations:
        if a in known:
            continue
        powers = [a]
        while (power := _compose(a, powers[-1])) != a:
            powers.append(power)
        for w, power in enumerate(powers, start=1):
            known.setdefault(power, (n_free, w if 2 * w <= len(powers) else w - len(powers)))
        n_free += 1
    if modulus**n_free > _MAX_ADDITIONS:
        return []
    chosen = [d for d in product(range(modulus), repeat=n_free) if next((x for x in d if x % 2), 0) == 1]
    return [tuple(d[i] * w % modulus for i, w in map(known.__getitem__, permutations)) for d in sorted(chosen, key=sum)]


class _Search:
    """A depth-first search for c: a letter a that adds 1 has c(p + 1) = t·c(p)·a⁻¹ with t a transposition or 1.

    Args:
        permutations: the permutations of the component, without the identity and without inverses of earlier ones.
        start: the start state.
        targets: the states to which resets lead.
    """

    def __init__(self, permutations: list[Permutation], start: int, targets: list[int]) -> None:
        n = len(permutations[0])
        self._permutations, self._start, self._targets = permutations, start, targets
        self._is_star = len({start, *targets}) == n  # all transpositions are with the start then
        self._steps = [tuple(range(n))]
        for i, j in combinations(range(n), 2):
            self._steps.append(tuple(j if q == i else i if q == j else q for q in range(n)))
        self.tried = 0

    def find(self, modulus: int, added: tuple[int, ...]) -> list[Permutation] | None:
        """Return c(0) … c(N − 1) for permutations that add the numbers `added`, one of them 1, or None if not found."""
        # The letter that adds 1 determines c(p + 1) from c(p) up to the transposition t, the only choice in the
        # search.
        back = _inverse(self._permutations[added.index(1)])
        c, limit = [self._steps[0]], self.tried + _TRIED_EACH * modulus * len(back)

        def extend() -> bool:
            self.tried += 1
            check_current("searching for counters")
            if self.tried > limit or not self._fits(c, modulus, added):
                return False
            if len(c) == modulus:
                return True
            after = _compose(c[-1], back)
            for step in self._steps:
                c.append(_compose(step, after))
                if extend():
                    return True
                c.pop()
            return False

        return c if extend() else None

    def _fits(self, c: list[Permutation], modulus: int, added: tuple[int, ...]) -> bool:
        """Return whether the moves c(p + d)·a·c(p)⁻¹ of all letters are transpositions between two sets of points.

        `c` holds the permutations known so far. A move over j steps to a known p must be a product of at most j
        transpositions, which prunes the search.
        """
        last, pairs = len(c) - 1, list[tuple[int, int]]()
        for a, d in zip(self._permutations, added, strict=True):
            power = self._steps[0]
            for j in range(1, len(a)):
                power = _compose(a, power)
                # Only pairs that involve the newest p are new; earlier ones were checked before.
                for p, q in {(last, (last + j * d) % modulus), ((last - j * d) % modulus, last)}:
                    if max(p, q) <= last and self._length(_compose(c[q], _compose(power, _inverse(c[p])))) > j:
                        return False
            for p in range(len(c)):
                if (q := (p + d) % modulus) <= last:
                    moved = _compose(c[q], _compose(a, _inverse(c[p])))
                    pairs += [(i, j) for i, j in enumerate(moved) if i < j]
        return two_sides(len(c[0]), self._start, pairs, self._targets) is not None

    def _length(self, f: Permutation) -> int:
        """Return the least number of transpositions whose product is f, all with the start if `_is_star`.

        Without that condition it is the number of points minus the number of cycles of f. The condition adds two for
        each nontrivial cycle without the start.
        """
        seen, length = set[int](), len(f)
        for q in (self._start, *range(len(f))):
            if q not in seen:
                # The number of points less one per cycle; with the start in every transposition, a nontrivial cycle
                # without it costs one more than its length.
                length += 1 if self._is_star and seen and f[q] != q else -1
            while q not in seen:
                seen.add(q)
                q = f[q]
        return length


def _pairs(rows: list[Permutation], start: int, c: list[Permutation], adds: dict[Permutation, int]) -> Cover:
    """Return the reachable pairs (p, y) of counter and moved point as a cover, with the counter in bits.

    `rows` are the maps of the letters, c[p] the permutation at counter p, `adds` what a permutation adds to p. Other
    maps set the counter to 0.
    """
    queue, numbers, columns = [(0, start)], {(0, start): 0}, list[list[int]]()
    for p, y in queue:  # grows
        x, column = c[p].index(y), list[int]()
        for row in rows:
            q = (p + adds[row]) % len(c) if row in adds else 0
            after = q, c[q][row[x]]
            if after not in numbers:
                numbers[after] = len(queue)
                queue.append(after)
            column.append(numbers[after])
        columns.append(column)
    p, y = np.array(queue).T
    n_bits = len(c).bit_length() - 1
    return Cover(
        np.array(columns).T.copy(),
        np.array([c[q].index(z) for q, z in queue]),
        np.column_stack([p[:, None] >> np.arange(n_bits) & 1, y]),
        tuple(range(n_bits + 1)),
    )


def series_cover(maps: np.ndarray, start: int) -> Cover | None:
    """Return a cover by the elements of the group that permutations and constants, int (L, n), generate, or None.

    The cover has one coordinate for each step of a series of normal subgroups of prime index. The result is None if the
    group is too large, has no such series, or is of prime order.
    """
    try:
        elements, _ = regular(maps)
    except (BudgetExceeded, InvalidMachine):
        return None
    rest = {g: g for g in map(tuple, elements.tolist())}  # for each element g = rʲ·n the factor n
    subgroup, columns = set(rest), list[list[int]]()
    while len(subgroup) > 1:
        if (smaller := _normal_of_prime_index(subgroup)) is None:
            return None
        back, column = _inverse(min(subgroup - smaller)), list[int]()
        for g in rest:
            j = 0
            while rest[g] not in smaller:
                rest[g], j = _compose(back, rest[g]), j + 1
            column.append(j)
        columns.append(column)
        subgroup = smaller
    if len(columns) < 2:
        return None
    return group_cover(maps, start, elements, np.array(columns).T, tuple(range(len(columns))))


def _normal_of_prime_index(group: set[Permutation]) -> set[Permutation] | None:
    """Return a normal subgroup of prime index, or None if none exists because the commutators generate the group."""
    # A maximal subgroup that contains all commutators and p-th powers is normal and has index p.
    derived = _generated({_compose(_compose(f, g), _inverse(_compose(g, f))) for f in group for g in group})
    index = len(group) // len(derived)
    if index == 1:
        return None
    prime = next(p for p in range(2, index + 1) if index % p == 0)
    subgroup = _generated(derived | {_power(g, prime) for g in group})
    for g in sorted(group):
        larger = _generated(subgroup | {g}) if g not in subgroup else group
        subgroup = larger if len(larger) < len(group) else subgroup
    return subgroup


def _generated(generators: set[Permutation]) -> set[Permutation]:
    queue = [tuple(range(len(next(iter(generators)))))]
    found = set(queue)
    for g in queue:  # grows
        new = {_compose(f, g) for f in generators} - found
        found |= new
        queue += new
    return found


def _compose(f: Permutation, g: Permutation) -> Permutation:
    return tuple(f[q] for q in g)


def _inverse(f: Permutation) -> Permutation:
    return tuple(sorted(range(len(f)), key=f.__getitem__))


def _power(f: Permutation, exponent: int) -> Permutation:
    power = f
    for _ in range(exponent - 1):
        power = _compose(f, power)
    return power
