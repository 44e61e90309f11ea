"""Answers on whether an external layer can represent a machine: a construction, a certified refusal, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display.brief import Brief
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.refuse import Refusal, refuse


@dataclass(frozen=True, eq=False)
class LayerAnswer(Brief):
    """The answer on a layer and a machine.

    Args:
        kind: "yes" for a construction, which `export` proves on the layer's own code; "no" for a refusal of all stacks
            of the layer, which was checked; "unknown".
        why: in a sentence.
        refusal: of all stacks for a "no"; else, if there is one, of one layer alone.
    """

    kind: str
    why: str
    plan: Any = None
    refusal: Refusal | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, with the certificate of a refusal."""
        value: dict[str, Any] = {"answer": self.kind, "evidence": self.why}
        return value if self.refusal is None else {**value, "certificate": self.refusal.to_json()}


def answer(machine: MooreMachine, layer: str) -> LayerAnswer:
    """Return whether a stack of the layer can represent the machine; raise `UnsupportedFormat` for an unknown layer.

    >>> from fsa2lrnn.automata import zoo
    >>> answer(zoo.parity(), "olmo-hybrid").kind, answer(zoo.parity(), "qwen3-next").kind
    ('yes', 'no')
    """
    file = layer_file(layer)
    refusal = refuse(machine, layer)
    if refusal is not None and refusal.is_of_stacks:
        return LayerAnswer("no", refusal.explain(), refusal=refusal)
    one = "" if refusal is None else f"; one layer alone can't hold it: {refusal.explain()}"
    try:
        plan = file.plan(machine)
    except (BudgetExceeded, NotExpressible) as fault:
        return LayerAnswer("unknown", f"{fault}{one}", refusal=refusal)
    return LayerAnswer("yes", f"{plan.how}{one}", plan=plan, refusal=refusal)
