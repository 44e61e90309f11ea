"""What theory says of a machine and a hard layer before it is trained: that it can be learned, can't be, or neither."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import NamedTuple

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.families.householder import BUDGET, HouseholderWitness, householder
from fsa2lrnn.families.lane_covers import IndistinguishableWords, alike_to_lanes


class LearnabilityPrediction(NamedTuple):
    """An answer, "yes", "no" or "unknown", what it says, and for a "yes" how large a block and how many factors do."""

    answer: str
    says: str
    block: int | None = None
    factors: int | None = None


def foresee(
    machine: MooreMachine, layer: str, ignore: Collection[Hashable] = (), deadline: Deadline = NEVER
) -> LearnabilityPrediction | None:
    """What is known of a layer of `recipe.LAYERS` and a minimal machine; None for blocks, which can be any machine.

    Of lanes the answer is about all that they can compute (T51). Of reflections it is about one vector a state (T7,
    T36): a "no" leaves open that several vectors a state would do. Outputs in `ignore` do not count; of reflections
    there is no "no" then, as theirs is of machines whose every output does.

    >>> from fsa2lrnn.automata import zoo
    >>> foresee(zoo.flip_flop(), "hard_lanes").answer, foresee(zoo.ab_star(), "hard_lanes").answer
    ('yes', 'no')
    """
    if layer == "hard_lanes":
        found = alike_to_lanes(machine, ignore=ignore)
        if isinstance(found, IndistinguishableWords):
            return LearnabilityPrediction("no", found.explain())
        if found is None:
            return LearnabilityPrediction("unknown", "too many letters to say what lanes can know of a word")
        return LearnabilityPrediction("yes", "the machine puts out alike on all words that are alike to lanes")
    if layer == "hard_reflections":
        found = householder(machine, budget=min(Deadline(BUDGET), deadline, key=Deadline.left))
        if isinstance(found, HouseholderWitness):
            return LearnabilityPrediction("yes", found.explain(), found.dimension, max(1, found.n_factors))
        if found.answer == "no" and set(ignore) & set(machine.outputs):
            return LearnabilityPrediction(
                "unknown", f"{found.explain()} Where some outputs do not count, that settles nothing"
            )
        return LearnabilityPrediction(found.answer, found.explain())
    return None
