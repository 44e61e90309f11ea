"""The subgroups of a monoid: whether they are trivial (aperiodic), and whether they are solvable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.elements import TransitionMonoid
from fsa2lrnn.automata.monoid.facts import Action, Fact, FactWitness
from fsa2lrnn.automata.monoid.images import Images
from fsa2lrnn.automata.monoid.permutations import (
    generating_set,
    is_solvable_group,
    nested_commutators_survive,
)

_SETS_TRIED = 50
_ELEMENTS_TRIED = 12


def is_aperiodic(monoid: TransitionMonoid, images: Images, r_trivial: Fact, locally_testable: Fact) -> Fact:
    """Decide whether no word permutes states in a cycle; for an acceptor, whether its language is star-free
    (Schützenberger 1965).

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
    if locally_testable.value:
        return Fact(True, "polynomial: since the machine is locally testable")
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


def is_solvable(monoid: TransitionMonoid, images: Images, commutative: Fact, aperiodic: Fact) -> Fact:
    """Decide whether every group in the monoid is solvable.

    The groups that permute the images decide, each by its derived series or, if it has more elements than the limit, by
    nested commutators, which can only refute. If the images are too many, the enumerated elements can only refute too.

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
    """Return a set of states on which elements of the monoid generate an unsolvable group; None proves nothing.

    An element permutes the states on its cycles. Elements with the same set of such states generate a group there: an
    idempotent power of one of them, multiplied on both sides, maps them into its group of units.
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
