"""Compute the transition monoid of a machine, and classify the machine by it (`classify`)."""

from fsa2lrnn.automata.monoid.classification import MAX_MONOID, Classification, classify
from fsa2lrnn.automata.monoid.elements import TransitionMonoid, enumerate_monoid
from fsa2lrnn.automata.monoid.facts import Action, Fact, FactWitness

__all__ = [
    "classify",
    "Classification",
    "Fact",
    "FactWitness",
    "MAX_MONOID",
    "Action",
    "TransitionMonoid",
    "enumerate_monoid",
]
