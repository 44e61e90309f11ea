"""L-triviality, which the graph of states does not decide."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.elements import TransitionMonoid
from fsa2lrnn.automata.monoid.facts import Fact, FactWitness


def is_l_trivial(monoid: TransitionMonoid, aperiodic: Fact, r_trivial: Fact, j_trivial: Fact) -> Fact:
    """Decide whether the monoid is L-trivial: elements that are each the other's suffix are equal.

    A finite monoid is J-trivial when it is R-trivial and L-trivial, and aperiodic if it is L-trivial, so that often
    another fact decides; else by the L-classes of the whole monoid.

    Witness: that of the fact that decides; or words (u, v, x, y): u ≠ v, while v = xu and u = yv; states (q, r, s): u
    leads q to r, v leads q to s ≠ r.
    """
    if j_trivial.value:
        return Fact(True, "polynomial: since the monoid is J-trivial")
    if r_trivial.value and j_trivial.value is False:
        return Fact(False, "polynomial: the monoid is R-trivial but not J-trivial", j_trivial.witness)
    if aperiodic.value is False:
        return Fact(False, "since the monoid is not aperiodic", aperiodic.witness)
    if not monoid.whole:
        return Fact(None, monoid.method)
    order = np.argsort(monoid.l_classes, kind="stable")
    together = np.flatnonzero(np.diff(monoid.l_classes[order]) == 0)
    if not len(together):
        return Fact(True, monoid.method)
    i, j = int(order[together[0]]), int(order[together[0] + 1])
    q = int(np.flatnonzero(monoid.elements[i] != monoid.elements[j])[0])
    r, s = int(monoid.elements[i, q]), int(monoid.elements[j, q])
    u, v, x, y = monoid.word(i), monoid.word(j), _put_before(monoid, i, j), _put_before(monoid, j, i)
    spelt = [monoid.action.spell(word) for word in (u, v, x + u, y + v)]
    says = (
        f"{spelt[0]} and {spelt[1]} act unlike on state {q}, though {spelt[2]} acts as the latter and {spelt[3]} as "
        "the former"
    )
    return Fact(False, monoid.method, FactWitness(says, (u, v, x, y), (q, r, s)))


def _put_before(monoid: TransitionMonoid, i: int, j: int) -> tuple[object, ...]:
    """Return a word x with x·i = j: a path in the left Cayley graph, read backwards."""
    return monoid.action.word(reversed(map_kernels.path(monoid.left, i, j).tolist()))
