"""Classify a machine by the algebra of its transition monoid, with the method that guarantees each fact.

The facts are those of the minimal machine, so they depend on the transduction alone. The monoid of an acceptor is the
syntactic monoid of its language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.elements import Images, enumerate_monoid
from fsa2lrnn.automata.monoid.facts import Action, Fact, refuted
from fsa2lrnn.automata.monoid.subgroups import has_two_groups, is_aperiodic, is_solvable
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, OutOfTime

MAX_MONOID = 100_000
"""The default bound on the enumerated elements of a transition monoid."""

_TITLES = {
    "monoid_size": "elements of the monoid",
    "group": "group",
    "commutative": "commutative",
    "aperiodic": "aperiodic (star-free)",
    "two_groups": "every group in it a 2-group",
    "solvable": "every group in it solvable",
    "r_trivial": "R-trivial",
    "j_trivial": "J-trivial (piecewise testable)",
}


@dataclass(frozen=True)
class Classification(Brief):
    """The facts on the monoid of a machine; an undecided `Fact` has the value None.

    Args:
        machine: the minimal machine, to whose states witnesses refer.
        monoid_size: the number of maps of states by words, including the identity.
        group: whether every word permutes the states.
        commutative: whether the order of letters does not matter.
        aperiodic: whether no word permutes states in a cycle; for an acceptor, whether the language is star-free.
        two_groups, solvable: whether every group in the monoid is a 2-group, or solvable.
        r_trivial, j_trivial: whether Green's relation is equality; J-trivial: piecewise testable.
    """

    machine: MooreMachine
    monoid_size: Fact
    group: Fact
    commutative: Fact
    aperiodic: Fact
    two_groups: Fact
    solvable: Fact
    r_trivial: Fact
    j_trivial: Fact

    @property
    def kind(self) -> Literal["group", "aperiodic", "mixed"] | None:
        """The kind of the monoid: "group", "aperiodic", "mixed" (neither), or None if undecided; "group" if trivial."""
        if self.group.value:
            return "group"
        return None if self.aperiodic.value is None else "aperiodic" if self.aperiodic.value else "mixed"

    @property
    def facts(self) -> dict[str, Fact]:
        """The facts by name."""
        return {name: getattr(self, name) for name in _TITLES}

    def explain(self) -> list[tuple[str, str]]:
        """Return two texts per property for a table: its name, and the answer with its reason and method."""
        rows = [("states", f"{self.machine.n_states:,} of the minimal machine")]
        for name, fact in self.facts.items():
            rows.append((_TITLES[name], fact.explain()))
        return rows

    def __str__(self) -> str:
        return f"{self.kind or 'undecided'}: {self.machine!r}"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; raise `UnsupportedFormat` for letters that JSON cannot represent."""
        facts = {name: fact.to_json() for name, fact in self.facts.items()}
        return {"n_states": self.machine.n_states, "kind": self.kind, "facts": facts}


def classify(
    machine: MachineSource, max_monoid: int = MAX_MONOID, max_seconds: float | Deadline | None = None
) -> Classification:
    """Return the classification of a machine, each fact with its method, and with a witness if it is false.

    Args:
        machine: any machine, or its source; it is minimised first.
        max_monoid: the largest number of elements to enumerate of the monoid, which may have nⁿ, and of its images and
            groups. Polynomial methods have limits of their own, which their facts state.
        max_seconds: a limit of processor time, of which each fact may use half of what remains; a fact that is not
            decided by then is "unknown: time limit". By default no limit.

    Raises `UnsupportedFormat` unless `max_monoid` is a whole number of at least 1.

    >>> from fsa2lrnn.automata import zoo
    >>> facts = classify(zoo.ab_star())
    >>> facts.kind, facts.monoid_size.value, facts.group.value, facts.j_trivial.value
    ('aperiodic', 6, False, False)
    >>> facts.j_trivial.witness.says
    "'ab' leads from state 0 over 1 back to 0"
    """
    minimal = minimise(as_machine(machine))
    action, ask = Action.of(minimal), _Questions(Deadline.of(max_seconds))
    with limited(ask.deadline.share(0.5)):
        monoid, images = enumerate_monoid(action, max_monoid), Images(action, max_monoid, partial=True)
    commutative, r_trivial = ask.fact(is_commutative, action), ask.fact(is_r_trivial, action)
    j_trivial = ask.fact(is_j_trivial, action, r_trivial)
    aperiodic = ask.fact(is_aperiodic, monoid, images, r_trivial)
    return Classification(
        machine=minimal,
        monoid_size=Fact(monoid.size if monoid.whole else None, monoid.method),
        group=ask.fact(is_group, action),
        commutative=commutative,
        aperiodic=aperiodic,
        two_groups=ask.fact(has_two_groups, monoid, aperiodic),
        solvable=ask.fact(is_solvable, monoid, images, commutative, aperiodic),
        r_trivial=r_trivial,
        j_trivial=j_trivial,
    )


@dataclass(frozen=True)
class _Questions:
    """The questions of one classification, each answered within a share of the time, else undecided."""

    deadline: Deadline

    def fact(self, question: Callable[..., Fact], *arguments: object) -> Fact:
        try:
            with limited(self.deadline.share(0.5)):
                return question(*arguments)
        except OutOfTime:
            return Fact(None, "unknown: time limit")
        except BudgetExceeded as fault:
            return Fact(None, f"unknown: {fault}")


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
            # `second[first]` is the map of ab, and n applications of an acyclic map reach a fixed point of it.
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
        # At least n applications; more do no harm where the power is idempotent already.
        f, n = f[f], (n + 1) // 2
    return f
