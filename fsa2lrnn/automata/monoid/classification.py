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
from fsa2lrnn.automata.monoid.factors import is_dot_depth_one, is_locally_testable, is_locally_threshold_testable
from fsa2lrnn.automata.monoid.facts import Action, Fact, Letters
from fsa2lrnn.automata.monoid.order import (
    is_commutative,
    is_definite,
    is_group,
    is_j_trivial,
    is_l_trivial,
    is_r_trivial,
    is_reverse_definite,
)
from fsa2lrnn.automata.monoid.subgroups import has_two_groups, is_aperiodic, is_solvable
from fsa2lrnn.automata.monoid.subregular import is_strictly_local, is_strictly_piecewise, tier_of
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.display import Brief, card
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
    "l_trivial": "L-trivial",
    "j_trivial": "J-trivial (piecewise testable)",
    "definite": "definite (the last letters decide)",
    "reverse_definite": "reverse definite (the first letters decide)",
    "locally_testable": "locally testable",
    "threshold_testable": "locally threshold testable",
    "dot_depth_one": "dot-depth at most one (piecewise locally testable)",
    "strictly_local": "strictly local",
    "strictly_piecewise": "strictly piecewise",
    "tier_strictly_local": "tier-based strictly local",
    "tier_locally_testable": "tier-based locally testable",
    "tier_threshold_testable": "tier-based locally threshold testable",
    "tier_dot_depth_one": "tier-based piecewise locally testable",
}


@dataclass(frozen=True)
class Classification(Brief):
    """The facts on the monoid and the language of a machine; an undecided `Fact` has the value None.

    Args:
        machine: the minimal machine, to whose states witnesses refer.
        monoid_size: the number of maps of states by words, including the identity.
        group: whether every word permutes the states.
        commutative: whether the order of letters does not matter.
        aperiodic: whether no word permutes states in a cycle; for an acceptor, whether the language is star-free.
        two_groups, solvable: whether every group in the monoid is a 2-group, or solvable.
        r_trivial, l_trivial, j_trivial: whether Green's relation is equality; J-trivial: piecewise testable.
        definite, definite_order: whether for some k the last k letters determine the state; the least k, or None.
        reverse_definite, reverse_definite_order: whether the first k letters determine it; the least k, or None.
        locally_testable: whether the factors of some length and the ends of the word determine the state.
        threshold_testable: whether these do if the factors are counted up to a threshold.
        dot_depth_one: whether an acceptor's language is a boolean combination of languages u₀ Σ* u₁ … Σ* u_k.
        strictly_local, strictly_local_order: whether an acceptor's language is defined by a set of allowed factors of
            k letters, including the ends of the word; the least k, or None.
        strictly_piecewise: whether every subsequence of an accepted word is accepted.
        tier: the letters that lead some state to another.
        tier_strictly_local, tier_locally_testable, tier_threshold_testable, tier_dot_depth_one: the same facts after
            all letters outside the tier are deleted.
    """

    machine: MooreMachine
    monoid_size: Fact
    group: Fact
    commutative: Fact
    aperiodic: Fact
    two_groups: Fact
    solvable: Fact
    r_trivial: Fact
    l_trivial: Fact
    j_trivial: Fact
    definite: Fact
    definite_order: int | None
    reverse_definite: Fact
    reverse_definite_order: int | None
    locally_testable: Fact
    threshold_testable: Fact
    dot_depth_one: Fact
    strictly_local: Fact
    strictly_local_order: int | None
    strictly_piecewise: Fact
    tier: Letters
    tier_strictly_local: Fact
    tier_locally_testable: Fact
    tier_threshold_testable: Fact
    tier_dot_depth_one: Fact

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
        orders = {
            "definite": self.definite_order,
            "reverse_definite": self.reverse_definite_order,
            "strictly_local": self.strictly_local_order,
        }
        rows = [("states", f"{self.machine.n_states:,} of the minimal machine")]
        for name, fact in self.facts.items():
            order = orders.get(name)
            letters = "" if order is None else f", {order} letter{'' if order == 1 else 's'}"
            rows.append((_TITLES[name], fact.explain(letters)))
        return rows

    def __str__(self) -> str:
        return f"{self.kind or 'undecided'}: {self.machine!r}"

    def _repr_html_(self) -> str:
        return card(f"Classification: {self.kind or 'undecided'}", self.explain())

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; raise `UnsupportedFormat` for letters that JSON cannot represent."""
        facts: dict[str, Any] = {name: fact.to_json() for name, fact in self.facts.items()}
        facts["definite"]["order"] = self.definite_order
        facts["reverse_definite"]["order"] = self.reverse_definite_order
        facts["strictly_local"]["order"] = self.strictly_local_order
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
    >>> facts.kind, facts.monoid_size.value, facts.locally_testable.value, facts.j_trivial.value
    ('aperiodic', 6, True, False)
    >>> facts.j_trivial.witness.says
    "'ab' leads from state 0 over 1 back to 0"
    """
    minimal = minimise(machine)
    action, ask = Action.of(minimal), _Questions(Deadline.of(max_seconds))
    with limited(ask.deadline.share(0.5)):
        monoid, images = enumerate_monoid(action, max_monoid), Images(action, max_monoid, partial=True)
    commutative, r_trivial = ask.fact(is_commutative, action), ask.fact(is_r_trivial, action)
    j_trivial = ask.fact(is_j_trivial, action, r_trivial)
    definite, definite_order = ask.order(is_definite, action)
    reverse_definite, reverse_definite_order = ask.order(is_reverse_definite, action)
    strictly_local, strictly_local_order = ask.order(is_strictly_local, minimal, action)
    by_factors, tier = ask.factors(action, j_trivial, definite, reverse_definite), tier_of(action)
    on_tier = by_factors
    if tier.names != action.names:  # J-trivial exactly if the whole monoid is: the other letters are its identity
        ends = ask.order(is_definite, tier)[0], ask.order(is_reverse_definite, tier)[0]
        on_tier = ask.factors(tier, j_trivial, *ends)
    locally_testable = by_factors["locally_testable"]
    aperiodic = ask.fact(is_aperiodic, monoid, images, r_trivial, locally_testable)
    return Classification(
        machine=minimal,
        monoid_size=Fact(monoid.size if monoid.whole else None, monoid.method),
        group=ask.fact(is_group, action),
        commutative=commutative,
        aperiodic=aperiodic,
        two_groups=ask.fact(has_two_groups, monoid, aperiodic),
        solvable=ask.fact(is_solvable, monoid, images, commutative, aperiodic),
        r_trivial=r_trivial,
        l_trivial=ask.fact(is_l_trivial, monoid, aperiodic, r_trivial, j_trivial),
        j_trivial=j_trivial,
        definite=definite,
        definite_order=definite_order,
        reverse_definite=reverse_definite,
        reverse_definite_order=reverse_definite_order,
        **by_factors,
        strictly_local=strictly_local,
        strictly_local_order=strictly_local_order,
        strictly_piecewise=ask.fact(is_strictly_piecewise, minimal, action),
        tier=tier.names,
        tier_strictly_local=ask.order(is_strictly_local, minimal, tier)[0],
        **{f"tier_{name}": fact for name, fact in on_tier.items()},
    )


@dataclass(frozen=True)
class _Questions:
    """The questions of one classification, each answered within a share of the time, else undecided."""

    deadline: Deadline

    def order(self, question: Callable[..., tuple[Fact, int | None]], *arguments: object) -> tuple[Fact, int | None]:
        try:
            with limited(self.deadline.share(0.5)):
                return question(*arguments)
        except OutOfTime:
            return Fact(None, "unknown: time limit"), None
        except BudgetExceeded as fault:
            return Fact(None, f"unknown: {fault}"), None

    def fact(self, question: Callable[..., Fact], *arguments: object) -> Fact:
        return self.order(lambda: (question(*arguments), None))[0]

    def factors(self, action: Action, j_trivial: Fact, definite: Fact, reverse_definite: Fact) -> dict[str, Fact]:
        """Return the facts on the factors of words by name, the widest class first."""
        dot_depth_one = self.fact(is_dot_depth_one, action, j_trivial)
        threshold = self.fact(is_locally_threshold_testable, action, dot_depth_one)
        locally_testable = self.fact(is_locally_testable, action, definite, reverse_definite, threshold)
        return {"dot_depth_one": dot_depth_one, "threshold_testable": threshold, "locally_testable": locally_testable}
