"""Decide stacks of an external layer for the table of layers in use (`fsa2lrnn.extra.huggingface.in_use`)."""

from __future__ import annotations

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.huggingface.in_use import Answer
from fsa2lrnn.extra.huggingface.refuse import answer


def decide_stack(machine: MooreMachine, layer: str) -> tuple[Answer, str]:
    """Return the answer on stacks, and its construction or the reason.

    >>> from fsa2lrnn.automata import zoo
    >>> decide_stack(zoo.parity(), "olmo-hybrid")
    ('yes', 'one head: reflections, 2 matrices')
    """
    decided = answer(machine, layer)
    if decided.plan is None:
        return ("no" if decided.kind == "no" else "unknown"), decided.why
    return "yes", decided.plan.how
