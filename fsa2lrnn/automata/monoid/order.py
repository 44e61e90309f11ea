"""Decide order properties of the transition monoid from the letters and the graph of states.

All tests are polynomial in the size of the automaton.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.facts import Action, Fact, refuted


def is_group(action: Action) -> Fact:
    """Decide whether the monoid is a group, that is, whether every letter permutes the states.

    Witness: words (a,), states (p, q, r) with p ≠ q and both led to r by the letter a.
    """
    method = "polynomial: whether every letter is a permutation"
    for a, row in enumerate(action.letters):
        targets, first = np.unique(row, return_index=True)
        if len(targets) < action.n_states:
            q = int(np.setdiff1d(np.arange(action.n_states), first)[0])
            r = int(row[q])
            p = int(np.flatnonzero(row == r)[0])
            word = action.word([a])
            return refuted(method, f"{action.spell(word)} leads states {p} and {q} both to {r}", [word], (p, q, r))
    return Fact(True, method)


def is_commutative(action: Action) -> Fact:
    """Decide whether the monoid is commutative, that is, whether every two letters commute.

    Witness: words (ab, ba), states (q, r, s): ab leads from q to r, ba to s ≠ r.
    """
    method = "polynomial: whether every two letters commute"
    for a, row in enumerate(action.letters):
        differ = row[action.letters] != action.letters[:, row]  # [b, q]: q·ba against q·ab
        if differ.any():
            b, q = (int(i) for i in np.argwhere(differ)[0])
            words = action.word([a, b]), action.word([b, a])
            r, s = action.follow(q, [a, b])[-1], action.follow(q, [b, a])[-1]
            says = f"from state {q}, {action.spell(words[0])} leads to {r} and {action.spell(words[1])} to {s}"
            return refuted(method, says, words, (q, r, s))
    return Fact(True, method)


def is_r_trivial(action: Action) -> Fact:
    """Decide whether the monoid is R-trivial: the graph of states has no cycles but loops (Brzozowski & Fich 1980).

    If q·uxy = q·u, then q·ux = q·u in an acyclic graph. If p·x = q ≠ p and q·y = p, then u = (xy)^ω and ux are
    R-equivalent and differ at p.

    Witness: words (w,), and the states through which w leads from a state p back to p.
    """
    method = "polynomial: whether the graph of states has no cycles but loops"
    graph = action.successors
    if (two := _two_alike(map_kernels.components(graph))) is None:
        return Fact(True, method)
    p, q = two
    numbers = [*map_kernels.path(graph, p, q).tolist(), *map_kernels.path(graph, q, p).tolist()]
    word = action.word(numbers)
    says = f"{action.spell(word)} leads from state {p} over {q} back to {p}"
    return refuted(method, says, [word], action.follow(p, numbers))


def _two_alike(classes: np.ndarray) -> tuple[int, int] | None:
    order = np.argsort(classes, kind="stable")
    together = np.flatnonzero(np.diff(classes[order]) == 0)
    return (int(order[together[0]]), int(order[together[0] + 1])) if len(together) else None


def is_j_trivial(action: Action, r_trivial: Fact) -> Fact:
    """Decide whether the monoid is J-trivial: the language of an acceptor is piecewise testable (Simon 1975).

    The test is that of Klíma & Polák (2013) for acyclic automata: for all letters a, b and states q, the states
    p = q·a(ab)^n and r = q·b(ab)^n are equal. This is necessary: both letters fix p and r, so u = a(ab)^n and
    v = b(ab)^n have uv = u and vu = v, are J-equivalent, and p = r in a J-trivial monoid. They prove that it suffices.

    Witness: that of `is_r_trivial`; or words (u, v), states (q, p, r): p = q·u ≠ r = q·v, while uv = u and vu = v.
    """
    method = "polynomial: no cycles but loops, and any two letters confluent"
    if r_trivial.value is False:
        return Fact(False, method, r_trivial.witness)
    letters = action.letters.astype(np.int64)
    for b, second in enumerate(letters):
        for a, first in enumerate(letters[:b]):
            ends = _power(second[first], action.n_states)
            if (ends[first] != ends[second]).any():
                q = int(np.flatnonzero(ends[first] != ends[second])[0])
                return _not_confluent(action, method, a, b, q)
    return Fact(True, method)


def _not_confluent(action: Action, method: str, a: int, b: int, q: int) -> Fact:
    """Return the refutation from a state whose images under letters a and b never meet under powers of ab.

    The power e = (ab)^k with e = e·ab is reached first. Then u = a(ab)^k and v = b(ab)^k lead to states that differ.
    """
    both = action.letters[b][action.letters[a]].astype(np.int64)
    times, power = 0, np.arange(action.n_states)
    while not (power == both[power]).all():
        times, power = times + 1, both[power]
    u, v = [a, *[a, b] * times], [b, *[a, b] * times]
    p, r = action.follow(q, u)[-1], action.follow(q, v)[-1]
    words = action.word(u), action.word(v)
    says = (
        f"from state {q}, {action.spell(words[0])} leads to {p} and {action.spell(words[1])} to {r}, "
        "though each equals itself followed by the other"
    )
    return refuted(method, says, words, (q, p, r))


def _power(f: np.ndarray, n: int) -> np.ndarray:
    while n > 1:
        f, n = f[f], (n + 1) // 2
    return f
