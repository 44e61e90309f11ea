"""The verdict on a learned machine: a proof against a target for all words, or agreement on held-out words."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import equivalent, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.heads import Heads
from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.learning.legal import free_output, is_restricted, legal_part
from fsa2lrnn.learning.result import EVERY_WORD, LEGAL_WORDS, Agreement
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.data import Batch, Sampler
from fsa2lrnn.verdicts import Proved, Refuted, Undecided
from fsa2lrnn.verification.equivalence import prove_equivalent


class VerifiedMachine(NamedTuple):
    """A machine, its compiled model, the verdict of `prove_equivalent` on it, and the words that the verdict covers."""

    machine: MooreMachine
    model: LRNN
    verdict: Proved | Refuted | Undecided
    scope: str


class LearningTarget:
    """The machine to be learned, restricted to the counted words."""

    def __init__(self, machine: MooreMachine, sampler: Sampler, outputs: tuple[Hashable, ...]) -> None:
        self._machine, self._sampler = machine, sampler
        self._free = free_output(outputs)
        self._specification = legal_part(machine, machine, sampler, self._free)

    def failing_word(self, machine: MooreMachine) -> tuple[Hashable, ...] | None:
        """Return a shortest counterexample among the counted words; None if `machine` is equivalent on them."""
        return equivalent(self._specification, self._part(machine))

    def judge(self, machine: MooreMachine) -> VerifiedMachine:
        """Return the compiled machine with the verdict of `prove_equivalent` on it.

        If illegal words do not count, the model outputs a special mark on them. If the target does so too, the verdict
        covers every word; otherwise the mark is one of the ignored outputs.
        """
        part = self._part(machine)
        model = compile_machine(part, normalisation="onehot")
        return VerifiedMachine(part, model, *self.verdict(model))

    def verdict(self, model: LRNN, seconds: float | None = None) -> tuple[Proved | Refuted | Undecided, str]:
        """Return the verdict on a model that `judge` made, and the words it covers, within `seconds` in total."""
        deadline = Deadline.of(seconds)
        verdict = prove_equivalent(model, self._machine, seconds=deadline)
        if isinstance(verdict, Proved) or not is_restricted(self._sampler):
            return verdict, EVERY_WORD
        return prove_equivalent(model, self._specification, ignore=(self._free,), seconds=deadline), LEGAL_WORDS

    def counting(self, scope: str) -> tuple[MooreMachine, tuple[Hashable, ...]]:
        """Return the machine that a model is compared with on the words of a scope, and its ignored outputs."""
        return (self._machine, ()) if scope == EVERY_WORD else (self._specification, (self._free,))

    @property
    def scope(self) -> str:
        """A description of the counted words."""
        return LEGAL_WORDS if is_restricted(self._sampler) else EVERY_WORD

    def _part(self, machine: MooreMachine) -> MooreMachine:
        return legal_part(machine, self._machine, self._sampler, self._free)


def agreement(
    machine: MooreMachine, batch: Batch, outputs: tuple[Hashable, ...], noise: float | None = 0.0
) -> Agreement:
    """Return how often `machine` agrees with held-out words; tokens index its alphabet, labels index `outputs`.

    `noise` is the share of wrong labels, None for unknown.
    """
    minimal = minimise(machine)
    walk = Heads(minimal.delta[:, None, :], np.array([minimal.start]))
    states = walk.states(batch.tokens.numpy())[..., 0]  # (B, T+1)
    number = {output: j for j, output in enumerate(outputs)}
    predicted = np.array([number.get(output, -1) for output in minimal.outputs])[states]
    labels = batch.labels.numpy()
    counts = labels != UNCOUNTED
    right = predicted == labels
    whole = (right | ~counts).all(1)
    return Agreement(len(labels), int(whole.sum()), int(counts.sum()), int((right & counts).sum()), noise)
