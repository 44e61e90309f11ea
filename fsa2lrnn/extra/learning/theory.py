"""Predictions before training: whether theory proves that a hard layer can or cannot represent a machine."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import NamedTuple

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.extra.learning.channel_covers import IndistinguishableWords, alike_to_channels
from fsa2lrnn.families.householder import BUDGET, HouseholderWitness, householder


class LearnabilityPrediction(NamedTuple):
    """The answer "yes", "no" or "unknown", its explanation, and for "yes" a sufficient block size and factor count."""

    answer: str
    says: str
    block: int | None = None
    factors: int | None = None


def foresee(
    machine: MooreMachine, layer: str, ignore: Collection[Hashable] = (), deadline: Deadline = NEVER
) -> LearnabilityPrediction | None:
    """Return the prediction of theory for a hard layer and a minimal machine, or None for layers without a theorem.

    T51: `hard_channels` compute a machine if and only if no two words with different outputs are alike to them. For
    reflections the answer assumes one vector per state (T7, T36), so "no" leaves several vectors per state open.
    Outputs in `ignore` do not count; reflections then never give "no", since T7 and T36 assume that every output does.

    >>> from fsa2lrnn.automata import zoo
    >>> foresee(zoo.flip_flop(), "hard_channels").answer, foresee(zoo.ab_star(), "hard_channels").answer
    ('yes', 'no')
    """
    if layer == "hard_channels":
        alike = alike_to_channels(machine, ignore=ignore)
        if isinstance(alike, IndistinguishableWords):
            return LearnabilityPrediction("no", alike.explain())
        if alike is None:
            return LearnabilityPrediction("unknown", "too many letters to say what channels can know of a word")
        return LearnabilityPrediction("yes", "the machine puts out alike on all words that are alike to channels")
    if layer == "hard_reflections":
        verdict = householder(machine, budget=min(Deadline(BUDGET), deadline, key=Deadline.left))
        if isinstance(verdict, HouseholderWitness):
            return LearnabilityPrediction("yes", verdict.explain(), verdict.dimension, max(1, verdict.n_factors))
        if verdict.answer == "no" and set(ignore) & set(machine.outputs):
            return LearnabilityPrediction(
                "unknown", f"{verdict.explain()} Where some outputs do not count, that settles nothing"
            )
        return LearnabilityPrediction(verdict.answer, verdict.explain())
    return None
