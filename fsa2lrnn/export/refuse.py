"""Search refusals: words after which no layer of a given name can have the outputs of a machine (`recheck`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.automata.language import distinguish, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.export import target
from fsa2lrnn.export.confused_words import ConfusedWords
from fsa2lrnn.export.plan import StagePlan
from fsa2lrnn.export.recheck import ARGUMENTS, FORM, LAYERS, recheck
from fsa2lrnn.layers import of_name

_MAX_MAPS = 20_000  # the most elements of the transition monoid that are searched


@dataclass(frozen=True)
class Refusal(Brief):
    """A certificate that no layer of a given name computes a machine, whose outputs after u wⁿ v have another period.

    Args:
        machine: the minimal machine.
        layer: the name of the layer in `recheck.LAYERS`.
        before, repeated, after: the words u, w and v, as letter numbers.
    """

    machine: MooreMachine
    layer: str
    before: tuple[int, ...]
    repeated: tuple[int, ...]
    after: tuple[int, ...]

    def check(self) -> str:
        """Return the claim that `recheck` proves, in one line. Raises `recheck.RejectedRefusal` if it proves none."""
        return recheck(self.to_json())

    @property
    def is_of_stacks(self) -> bool:
        """Whether the refusal applies to stacks of layers, not only to one layer."""
        return ARGUMENTS[LAYERS[self.layer]][2] != "one layer"

    def explain(self) -> str:
        """Return a sentence that names the words and states the contradiction."""
        period, _, scope = ARGUMENTS[LAYERS[self.layer]]
        held = "are constant" if period == 1 else "have period 1 or 2"
        names = [self._text(word) for word in (self.before, self.repeated, self.after)]
        then = f', and then "{names[2]}"' if self.after else ""
        first = f'"{names[0]}" and then ' if self.before else ""
        return (
            f'After {first}"{names[1]}" again and again{then}, states of {scope} {held} in the end if they recur; the '
            "machine's outputs there are not."
        )

    def to_json(self) -> dict[str, Any]:
        """Return a certificate that `recheck` accepts."""
        return {
            "format": FORM[0],
            "version": FORM[1],
            "layer": self.layer,
            "argument": LAYERS[self.layer],
            "machine": {
                "alphabet": [symbols.to_json(letter) for letter in self.machine.alphabet],
                "delta": self.machine.delta.tolist(),
                "outputs": [symbols.to_json(output) for output in self.machine.outputs],
                "start": self.machine.start,
            },
            "before": list(self.before),
            "repeated": list(self.repeated),
            "after": list(self.after),
        }

    def _text(self, word: tuple[int, ...]) -> str:
        alphabet = self.machine.alphabet
        return symbols.word_text([alphabet[a] for a in word], alphabet)


def refuse(machine: MooreMachine, layer: str) -> Refusal | None:
    """Return a refusal that `recheck` has accepted, or None if none is found, which proves nothing.

    >>> from fsa2lrnn.automata import zoo
    >>> refuse(zoo.parity(), "qwen3-next").repeated, refuse(zoo.parity(), "olmo-hybrid")
    ((1,), None)
    """
    layer = of_name(layer).exported_to[0]  # the models of one row have the same recurrence
    minimal = minimise(machine)
    period, may_be_long, _ = ARGUMENTS[LAYERS[layer]]
    for word, row in _maps(minimal.delta, may_be_long):
        for q in np.unique(_power(row, minimal.n_states)):  # on cycles
            # q is on a cycle of the word; if the layer's period does not return it, a word separates the two states.
            later = int(_power(row, period)[q])
            if later != q:
                after = distinguish(minimal, int(q), later) or ()
                refusal = Refusal(minimal, layer, _way(minimal, int(q)), word, after)
                refusal.check()
                return refusal
    return None


def _maps(delta: np.ndarray, may_be_long: bool) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield a shortest word of each map of states, int64 (n,), and the map; letters alone if not `may_be_long`."""
    queue: list[tuple[tuple[int, ...], np.ndarray]] = [((a,), row) for a, row in enumerate(delta)]
    visited = {row.tobytes() for row in delta}
    for word, row in queue:  # grows
        yield word, row
        for a in range(len(delta) if may_be_long and len(visited) < _MAX_MAPS else 0):
            # The map of the longer word: first the word, then the letter.
            longer = delta[a][row]
            if longer.tobytes() not in visited:
                visited.add(longer.tobytes())
                queue.append(((*word, a), longer))


def _power(row: np.ndarray, n: int) -> np.ndarray:
    result = np.arange(len(row))
    while n:
        result = row[result] if n % 2 else result
        row, n = row[row], n // 2
    return result


def _way(machine: MooreMachine, target: int) -> tuple[int, ...]:
    words: dict[int, tuple[int, ...]] = {machine.start: ()}
    queue = [machine.start]
    for q in queue:  # grows
        for a, row in enumerate(machine.delta):
            if (reached := int(row[q])) not in words:
                words[reached] = (*words[q], a)
                queue.append(reached)
    return words[target]


@dataclass(frozen=True, eq=False)
class LayerAnswer(Brief):
    """The answer to the question whether stacks of an external layer can represent a machine.

    Args:
        kind: "yes" for a construction, which `export` proves on the layer's own code; "no" for a checked refusal of all
            stacks of the layer; otherwise "unknown".
        why: the construction or the reason, as text.
        plan: the construction, None unless `kind` is "yes".
        refusal: for "no", the refusal of all stacks; otherwise that of a single layer, if one is found.
    """

    kind: str
    why: str
    plan: StagePlan | None = None
    refusal: Refusal | ConfusedWords | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the answer as a JSON object, with the certificate of a refusal if there is one."""
        value: dict[str, Any] = {"answer": self.kind, "evidence": self.why}
        return value if self.refusal is None else {**value, "certificate": self.refusal.to_json()}


def answer(machine: MooreMachine, layer: str) -> LayerAnswer:
    """Decide whether a stack of layers can represent a machine; raise `UnsupportedFormat` for an unknown name.

    >>> from fsa2lrnn.automata import zoo
    >>> answer(zoo.parity(), "olmo-hybrid").kind, answer(zoo.parity(), "qwen3-next").kind
    ('yes', 'no')
    """
    into = target(layer)
    refusal = refuse(machine, layer)
    if refusal is not None and refusal.is_of_stacks:
        return LayerAnswer("no", refusal.explain(), refusal=refusal)
    one = "" if refusal is None else f"; one layer alone cannot hold it: {refusal.explain()}"
    try:
        plan = into.plan(machine)
    except (BudgetExceeded, NotExpressible) as fault:
        return LayerAnswer("unknown", f"{fault}{one}", refusal=refusal)
    return LayerAnswer("yes", f"{plan.how}{one}", plan=plan, refusal=refusal)


def decide_stack(machine: MooreMachine, layer: str) -> tuple[Literal["yes", "no", "unknown"], str]:
    """Return the answer on stacks of a released model's layers, and its construction or the reason (for `decide`).

    >>> from fsa2lrnn.automata import zoo
    >>> decide_stack(zoo.parity(), "olmo-hybrid")
    ('yes', 'one layer, one head: reflections, 2 matrices')
    """
    decided = answer(machine, layer)
    if decided.plan is None:
        return ("no" if decided.kind == "no" else "unknown"), decided.why
    return "yes", decided.plan.how
