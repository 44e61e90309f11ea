"""The statements on which the toolkit and the paper rest, each with a checker: proved, tested, refuted or undecided.

>>> from verify import propositions
>>> (outcome,) = propositions.run(propositions.select(propositions.REGISTRY, ["p-1.2-stable"]))
>>> type(outcome.answer).__name__, outcome.expected, outcome.answer.data["overflow"]["float32"]
('Refuted', True, 256)
"""

from verify.propositions import (
    canary,
    cascades,
    compilation,
    families,
    grids,
    layers,
    probes,
    scans,
    stability,
    weighted,
)
from verify.propositions.registry import (
    DEEP,
    FAST,
    Answer,
    Effort,
    Outcome,
    Proposition,
    Proved,
    Refuted,
    Tested,
    Undecided,
    run,
    select,
)

REGISTRY: tuple[Proposition, ...] = (
    *families.PROPOSITIONS,
    *grids.PROPOSITIONS,
    *stability.PROPOSITIONS,
    *scans.PROPOSITIONS,
    *compilation.PROPOSITIONS,
    *layers.PROPOSITIONS,
    *cascades.PROPOSITIONS,
    *probes.PROPOSITIONS,
    *canary.PROPOSITIONS,
    *weighted.PROPOSITIONS,
)

__all__ = [
    "DEEP",
    "FAST",
    "REGISTRY",
    "Answer",
    "Effort",
    "Outcome",
    "Proposition",
    "Proved",
    "Refuted",
    "Tested",
    "Undecided",
    "run",
    "select",
]
