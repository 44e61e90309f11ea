"""Classify a machine by the algebra of its transition monoid, with the method that guarantees each fact.

The facts are those of the minimal machine, so they depend on the transduction alone. The monoid of an acceptor is the
syntactic monoid of its language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.elements import Images, enumerate_monoid
from fsa2lrnn.automata.monoid.facts import Action, Fact
from fsa2lrnn.automata.monoid.order import (
    is_commutative,
    is_group,
    is_j_trivial,
    is_r_trivial,
)
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
    machine: MooreMachine, max_monoid: int = MAX_MONOID, max_seconds: float | Deadline | None = None
) -> Classification:
    """Return the classification of a machine, each fact with its method, and with a witness if it is false.

    Args:
        machine: any machine; it is minimised first.
        max_monoid: the largest number of elements to enumerate of the monoid, which may have nⁿ, and of its images and
            groups. Polynomial methods have limits of their own, which their facts state.
        max_seconds: a time limit, of which each fact may use half of what remains; a fact that is not decided by then
            is "unknown: time limit". By default no limit.

    Raises `UnsupportedFormat` unless `max_monoid` is a whole number of at least 1.

    >>> from fsa2lrnn.automata import zoo
    >>> facts = classify(zoo.ab_star())
    >>> facts.kind, facts.monoid_size.value, facts.group.value, facts.j_trivial.value
    ('aperiodic', 6, False, False)
    >>> facts.j_trivial.witness.says
    "'ab' leads from state 0 over 1 back to 0"
    """
    minimal = minimise(machine)
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
