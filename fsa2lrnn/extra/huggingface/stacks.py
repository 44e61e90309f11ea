"""Decide stacks of an external layer for the table of layers in use (`fsa2lrnn.extra.huggingface.in_use`)."""

from __future__ import annotations

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.huggingface.in_use import Answer
from fsa2lrnn.extra.huggingface.plan import OneLayerPlan
from fsa2lrnn.extra.huggingface.refuse import answer


def decide_stack(machine: MooreMachine, layer: str) -> tuple[Answer, bool, str]:
    """Return the answer on stacks, whether its construction is one layer without convolutions, and a reason.

    >>> from fsa2lrnn.automata import zoo
    >>> decide_stack(zoo.parity(), "slstm")[:2]
    ('yes', True)
    """
    decided = answer(machine, layer)
    if decided.plan is None:
        return ("no" if decided.kind == "no" else "unknown"), False, decided.why
    return "yes", isinstance(decided.plan, OneLayerPlan), decided.plan.how
