"""The verdict on a machine that was learned: against a target for all words, or else by words held out."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import equivalent, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lower.harden import Heads
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.training.data import Batch, Sampler
from fsa2lrnn.training.learning.legal import free_output, is_restricted, legal_part
from fsa2lrnn.training.learning.result import EVERY_WORD, LEGAL_WORDS, Agreement
from fsa2lrnn.verdicts import Proved, Refuted, Undecided
from fsa2lrnn.verification.equivalence import BUDGET, prove_equivalent


class VerifiedMachine(NamedTuple):
    """A machine, the model of it, and what `prove_equivalent` says of the model, for which words."""

    machine: MooreMachine
    model: LRNN
    verdict: Proved | Refuted | Undecided
    scope: str


class LearningTarget:
    """The machine to be learned, on the words that count."""

    def __init__(self, machine: MooreMachine, sampler: Sampler, outputs: tuple[Hashable, ...]) -> None:
        self._machine, self._sampler = machine, sampler
        self._free = free_output(outputs)
        self._wanted = legal_part(machine, machine, sampler, self._free)

    def failing_word(self, machine: MooreMachine) -> tuple[Hashable, ...] | None:
        """A shortest word that counts on which `machine` errs; None if there is none."""
        return equivalent(self._wanted, self._part(machine))

    def judge(self, machine: MooreMachine) -> VerifiedMachine:
        """Compile what was learned and let the judge of compiled models decide.

        Where illegal words don't count, the model puts out a mark on them. If that is what the target does too, the
        verdict is for every word; else the mark is among the outputs that do not count.
        """
        part = self._part(machine)
        model = compile_machine(part, normalisation="onehot")
        return VerifiedMachine(part, model, *self.verdict(model))

    def verdict(self, model: LRNN, seconds: float | None = None) -> tuple[Proved | Refuted | Undecided, str]:
        """What the judge says of a model that `judge` has made, and for which words; `seconds` limit all of it."""
        deadline = Deadline.of(seconds)
        verdict = prove_equivalent(model, self._machine, seconds=deadline)
        if isinstance(verdict, Proved) or not is_restricted(self._sampler):
            return verdict, EVERY_WORD
        return prove_equivalent(model, self._wanted, ignore=(self._free,), seconds=deadline), LEGAL_WORDS

    def counting(self, scope: str) -> tuple[MooreMachine, tuple[Hashable, ...]]:
        """What a model is compared with on the words of a scope, and the outputs of it that do not count."""
        return (self._machine, ()) if scope == EVERY_WORD else (self._wanted, (self._free,))

    @property
    def wanted(self) -> MooreMachine:
        """The machine, minimal, with a mark where nothing counts."""
        return self._wanted

    @property
    def scope(self) -> str:
        """The words that count."""
        return LEGAL_WORDS if is_restricted(self._sampler) else EVERY_WORD

    def judge_network(
        self,
        model: LRNN,
        budget: int = BUDGET,
        empty_word: bool = True,
        seconds: float | Deadline | None = None,
    ) -> Proved | Refuted | Undecided:
        """What `prove_equivalent` says of a trained network itself, on the words that count."""
        if is_restricted(self._sampler):
            return prove_equivalent(model, self._wanted, budget, ignore=(self._free,), seconds=seconds)
        return prove_equivalent(model, self._machine, budget, empty_word, seconds=seconds)

    def _part(self, machine: MooreMachine) -> MooreMachine:
        return legal_part(machine, self._machine, self._sampler, self._free)


def agreement(
    machine: MooreMachine, batch: Batch, outputs: tuple[Hashable, ...], noise: float | None = 0.0
) -> Agreement:
    """Compare `machine` with held-out words: tokens in its own letters' order, labels numbering `outputs`.

    `noise` is the share of labels that are wrong, None for unknown.
    """
    minimal = minimise(machine)
    walk = Heads(minimal.delta[:, None, :], np.array([minimal.start]))
    states = walk.states(batch.tokens.numpy())[..., 0]  # (B, T+1)
    number = {output: j for j, output in enumerate(outputs)}
    given = np.array([number.get(output, -1) for output in minimal.outputs])[states]
    labels = batch.labels.numpy()
    counts = labels != UNCOUNTED
    right = given == labels
    whole = (right | ~counts).all(1)
    return Agreement(len(labels), int(whole.sum()), int(counts.sum()), int((right & counts).sum()), noise)
