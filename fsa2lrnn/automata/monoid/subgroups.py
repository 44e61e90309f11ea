"""Decide whether the subgroups of a transition monoid are trivial (it is aperiodic), 2-groups, or solvable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.elements import Images, TransitionMonoid
from fsa2lrnn.automata.monoid.facts import Action, Fact, FactWitness

SMALLEST_UNSOLVABLE = 60  # the order of A₅
COMMUTATORS_KEPT = 12  # at each depth of nesting


def elements(generators: np.ndarray, cap: int) -> np.ndarray | None:
    """Return the elements of the group that permutations (m, n) generate, (N, n), identity first; None if N > `cap`.

    Raises `OutOfTime` if the current deadline passes.

    >>> elements(np.array([[1, 2, 0]], np.uint32), cap=10).tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    """
    identity = np.arange(generators.shape[1], dtype=np.uint32)
    listed, _, _, _, whole = map_kernels.generate(generators, identity, False, cap)
    return listed if whole else None


def generating_set(permutations: np.ndarray, cap: int) -> list[int]:
    """Return the numbers of permutations that generate the same group as all; each at least doubles the order.

    The result is incomplete if the permutations chosen so far generate more than `cap` elements.

    >>> generating_set(np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]], np.uint32), cap=10)
    [1]
    """
    chosen: list[int] = []
    covered: set[bytes] | None = _as_set(permutations[:0], cap)
    for i, permutation in enumerate(permutations):
        # By Lagrange's theorem the order at least doubles with each new generator, so there are at most log₂ of it.
        if covered is not None and permutation.tobytes() not in covered:
            chosen.append(i)
            covered = _as_set(permutations[chosen], cap)
    return chosen


def is_solvable_group(generators: np.ndarray, cap: int) -> bool | None:
    """Decide whether permutations (m, n) generate a solvable group; None if undecided.

    Up to `cap` elements, the derived series decides; beyond, `nested_commutators_survive` can only refute.

    >>> is_solvable_group(np.array([[1, 0, 2, 3], [1, 2, 3, 0]], np.uint32), cap=100)
    True
    >>> is_solvable_group(np.array([[1, 0, 2, 3, 4], [1, 2, 3, 4, 0]], np.uint32), cap=1_000)
    False
    """
    group = elements(generators, cap)
    if group is None:
        return False if nested_commutators_survive(generators) else None
    order = len(group)
    while order >= SMALLEST_UNSOLVABLE:
        # A step that does not shrink is a perfect group, which stays in the series for ever.
        generators, smaller = _derived(generators, order)
        if smaller == order:
            return False
        order = smaller
    return True


def nested_commutators_survive(generators: np.ndarray) -> bool:
    """Return whether a commutator other than the identity was found that is nested deeper than a solvable group allows.

    The derived series of a solvable group of permutations of n points has at most log₂ n! steps, since each at least
    halves the order. So True proves that the group is not solvable; False proves nothing.

    >>> nested_commutators_survive(np.array([[1, 0, *range(2, 20)], [*range(1, 20), 0]], np.uint32))
    True
    """
    n = generators.shape[1]
    layer = list(generators)
    for _ in range(math.ceil(math.lgamma(n + 1) / math.log(2)) + 1):
        deeper = _distinct([_commutator(f, g) for f, g in combinations(layer, 2)])
        # Every group of the derived series is normal in the whole group, so conjugates may fill the layer up.
        conjugates = [_conjugate(f, g) for f, g in product(deeper[:COMMUTATORS_KEPT], generators)]
        layer = _distinct(deeper + conjugates)[:COMMUTATORS_KEPT]
        if not layer:
            return False
    return True


def _derived(generators: np.ndarray, order: int) -> tuple[np.ndarray, int]:
    """Return generators (k, n) of the derived subgroup of a permutation group, and its order.

    The derived subgroup is the normal closure of the commutators of the generators: conjugates are added until none is
    new.
    """
    found: list[np.ndarray] = []
    covered: set[bytes] = _as_set(generators[:0], order) or set()
    waiting = [_commutator(f, g) for f, g in combinations(generators, 2)]
    while waiting:
        f = waiting.pop()
        if f.tobytes() not in covered:
            found.append(f)
            covered = _as_set(np.array(found), order) or set()
            # Conjugates by generators suffice: a subgroup that all generators map into itself is normal in a finite
            # group.
            waiting += [_conjugate(f, g) for g in generators]
    return np.array(found, generators.dtype).reshape(-1, generators.shape[1]), len(covered)


def _as_set(generators: np.ndarray, cap: int) -> set[bytes] | None:
    group = elements(generators, cap)
    return None if group is None else {g.tobytes() for g in group}


def _distinct(permutations: list[np.ndarray]) -> list[np.ndarray]:
    return [f for f in {f.tobytes(): f for f in permutations}.values() if (f != np.arange(len(f))).any()]


def _commutator(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    # `argsort` inverts a permutation; read from the inside, this is f⁻¹, then g⁻¹, f and g.
    return g[f[np.argsort(g)[np.argsort(f)]]]


def _conjugate(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return g[f[np.argsort(g)]]


_SETS_TRIED = 50
_ELEMENTS_TRIED = 12


def is_aperiodic(monoid: TransitionMonoid, images: Images, r_trivial: Fact) -> Fact:
    """Decide whether no word permutes states in a cycle.

    For an acceptor: whether its language is star-free (Schützenberger 1965).

    PSPACE-complete (Cho & Huynh 1991), so cheap certificates come first, then the elements of the monoid, then, if
    they were too many, the images of its elements.

    Witness: words (w,), states (q₀ … q_{m−1}), m ≥ 2 distinct states that w leads round: q_i to q_{i+1}, the last to
    q₀. The word is a shortest one unless the method is the images.
    """
    action = monoid.action
    turning = int(map_kernels.first_turning(action.letters))
    if turning >= 0:
        return Fact(False, "polynomial: a letter turns a cycle", _turns(action, [turning]))
    if r_trivial.value:
        return Fact(True, "polynomial: no cycles but loops, since the monoid is R-trivial")
    turning = int(map_kernels.first_turning(monoid.elements))
    if turning >= 0:
        witness = _turns(action, monoid.numbers(turning))
        return Fact(False, "by enumeration of the monoid, shortest word first", witness)
    if monoid.whole:
        return Fact(True, monoid.method)
    for root in images.roots():
        _, edges = images.generators(root)
        words = images.words(root, *edges[0])
        word = next(word for word in words if map_kernels.first_turning(_map(action, word)[None]) == 0)
        return Fact(False, "by enumeration of the images", _turns(action, word))
    return Fact(True, images.method) if images.whole else Fact(None, f"{monoid.method} and {images.method}")


def _map(action: Action, numbers: Sequence[int]) -> np.ndarray:
    f = np.arange(action.n_states).astype(action.letters.dtype)
    for a in numbers:
        f = action.letters[a][f]
    return f


def _turns(action: Action, numbers: Sequence[int]) -> FactWitness:
    f = _map(action, numbers)
    (periodic,) = map_kernels.periodic_states(f[None])
    cycle = [int(np.flatnonzero(periodic & (f != np.arange(len(f))))[0])]
    while f[cycle[-1]] != cycle[0]:
        cycle.append(int(f[cycle[-1]]))
    word = action.word(numbers)
    path = " → ".join(map(str, [*cycle[:12], *(["…"] if len(cycle) > 12 else []), cycle[0]]))
    return FactWitness(f"{action.spell(word)} leads states round the cycle {path}", (word,), tuple(cycle))


def has_two_groups(monoid: TransitionMonoid, aperiodic: Fact) -> Fact:
    """Decide whether every group in the monoid is a 2-group: its order is a power of 2.

    By Cauchy's theorem this holds if and only if every word permutes states in cycles of 2ᵏ states only.

    Witness: words (w,), states (q₀ … q_{m−1}), where w leads q_i to q_{i+1}, the last to q₀, and m is not a power of 2.
    """
    if aperiodic.value:
        return Fact(True, "every group in the monoid is trivial, since it is aperiodic")
    for begin in range(0, monoid.size, step := max(1, (1 << 20) // monoid.action.n_states)):
        powers = monoid.elements[begin : begin + step].astype(np.intp)
        for _ in range(monoid.action.n_states.bit_length()):  # on cycles of 2ᵏ states these powers are the identity
            powers = np.take_along_axis(powers, powers, axis=1)
        odd = np.argwhere(np.take_along_axis(powers, powers, axis=1) != powers)
        if len(odd):
            break
    else:
        return Fact(True if monoid.whole else None, monoid.method)
    i, state = odd[0].tolist()
    f, q, i = monoid.elements[begin + i], int(powers[i, state]), begin + i
    cycle = [q]
    while f[cycle[-1]] != q:
        cycle.append(int(f[cycle[-1]]))
    word = monoid.word(i)
    says = f"{monoid.action.spell(word)} leads states round a cycle of {len(cycle)}"
    return Fact(False, "by enumeration of the monoid", FactWitness(says, (word,), tuple(cycle)))


def is_solvable(monoid: TransitionMonoid, images: Images, commutative: Fact, aperiodic: Fact) -> Fact:
    """Decide whether every group in the monoid is solvable.

    The groups that permute the images decide: each by its derived series or, if it has more elements than the limit, by
    nested commutators, which can only refute. If there are too many images, the enumerated elements can only refute.

    Witness: words (w₁, …), states X: the words permute X, and generate a group there that is not solvable.
    """
    if aperiodic.value:
        return Fact(True, "every group in the monoid is trivial, since it is aperiodic")
    if commutative.value:
        return Fact(True, "every group in the monoid is commutative, since the monoid is")
    action = monoid.action
    if action.n_states <= 4:
        return Fact(True, "every group in the monoid acts on at most 4 states")
    undecided: Fact | None = None
    for root in images.roots():
        states = images.members(root)
        # Roots come with large sets first, and groups on at most 4 points are solvable.
        if len(states) <= 4:
            break
        permutations, edges = images.generators(root)
        chosen = generating_set(permutations, images.cap)
        solvable = is_solvable_group(permutations[chosen], images.cap)
        if solvable is None:
            undecided = Fact(None, f"capped at {images.cap:,} elements of a group that permutes {len(states)} states")
        elif not solvable:
            words = [action.word(word) for i in chosen for word in images.words(root, *edges[i])]
            return Fact(False, "by the groups that permute the images", _generate(action, words, states))
    if images.whole and undecided is None:
        return Fact(True, f"{images.method}, and the groups that permute them")
    if witness := _refuted_by_elements(monoid):
        return Fact(False, "by the elements found of the monoid", witness)
    return undecided if undecided is not None else Fact(None, images.method)


def _refuted_by_elements(monoid: TransitionMonoid) -> FactWitness | None:
    """Return the witness of an unsolvable group that elements of the monoid generate; None proves nothing.

    An element permutes the states on its cycles. Elements with the same set of such states generate a group there: to
    multiply them on both sides by an idempotent power of one maps them into the group of units of this idempotent.
    """
    periodic = map_kernels.periodic_states(monoid.elements)
    large = np.flatnonzero(np.count_nonzero(periodic, axis=1) > 4)
    _, which, counts = np.unique(np.packbits(periodic[large], axis=1), axis=0, return_inverse=True, return_counts=True)
    which = which.reshape(-1)  # some versions of numpy keep an axis
    for s in np.argsort(-counts, kind="stable")[:_SETS_TRIED]:
        members = large[which == s]
        states = np.flatnonzero(periodic[members[0]])
        permutations = np.searchsorted(states, monoid.elements[members][:, states]).astype(np.uint32)
        _, first = np.unique(permutations, axis=0, return_index=True)
        chosen = np.sort(first)[:_ELEMENTS_TRIED]
        if nested_commutators_survive(permutations[chosen]):
            words = [monoid.word(int(members[i])) for i in chosen]
            return _generate(monoid.action, [word for word in words if word], states)
    return None


def _generate(action: Action, words: Sequence[tuple[object, ...]], states: np.ndarray) -> FactWitness:
    words = tuple(dict.fromkeys(words))
    spelled = ", ".join(action.spell(word) for word in words)
    listed = ", ".join(map(str, states[:12])) + (", …" if len(states) > 12 else "")
    says = f"{spelled} permute the states {listed} and generate a group there that is not solvable"
    return FactWitness(says, words, tuple(int(q) for q in states))
