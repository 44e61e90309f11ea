"""The verdict on a learned machine: a proof against a target for all words, or agreement on held-out words.

A proof is about the legal words of a task and the positions that count, to which machines are restricted for it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import equivalent, explore, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.heads import Heads
from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.learning.result import EVERY_WORD, LEGAL_WORDS, Agreement
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.symbols import align
from fsa2lrnn.training.data import Batch, Sampler
from fsa2lrnn.verdicts import Proved, Refuted, Undecided
from fsa2lrnn.verification.equivalence import BUDGET, prove_equivalent


def is_restricted(sampler: Sampler) -> bool:
    """Return whether some word is illegal, or some position does not count."""
    return not (sampler.choices.all() and all(sampler.scored))


def free_output(outputs: tuple[Hashable, ...]) -> Hashable:
    """Return a symbol for "does not count" that is not an output: None, or a tuple if None is an output.

    >>> free_output((False, True)), free_output((None, 0))
    (None, ('free', None))
    """
    free: Hashable = None
    while free in outputs:
        free = ("free", free)
    return free


def legal_part(machine: MooreMachine, target: MooreMachine, sampler: Sampler, free: Hashable) -> MooreMachine:
    """Return `machine` on legal words, minimised, with output `free` where none counts or after an illegal letter.

    `sampler` determines the letters that `target` allows in each state; the empty word does not count.
    """
    if not is_restricted(sampler):
        return minimise(machine)
    period = len(sampler.scored)
    order = align(target.alphabet, machine.alphabet)
    position = {letter: a for a, letter in enumerate(target.alphabet)}

    def step(state: tuple[int, int, int, bool] | None, letter: Hashable) -> tuple[int, int, int, bool] | None:
        a = position[letter]
        if state is None or not sampler.choices[state[0], state[2], a]:
            return None
        phase, q, p, _ = state
        after = int(machine.delta[order[a], q]), int(target.delta[a, p])
        return ((phase + 1) % period, *after, sampler.scored[phase])

    def output(state: tuple[int, int, int, bool] | None) -> Hashable:
        return machine.outputs[state[1]] if state is not None and state[3] else free

    # A state is (position modulo the period, state of the machine, state of the target, whether the last output
    # counts); None follows an illegal letter.
    start = (0, machine.start, target.start, False)
    part = explore(target.alphabet, start, step, output)
    return minimise(MooreMachine(part.delta, part.outputs, part.start, part.alphabet))


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
    def specification(self) -> MooreMachine:
        """The minimal target machine, with a special mark as output where nothing counts."""
        return self._specification

    @property
    def scope(self) -> str:
        """A description of the counted words."""
        return LEGAL_WORDS if is_restricted(self._sampler) else EVERY_WORD

    def judge_network(
        self,
        model: LRNN,
        budget: int = BUDGET,
        empty_word: bool = True,
        seconds: float | Deadline | None = None,
    ) -> Proved | Refuted | Undecided:
        """Return the verdict of `prove_equivalent` on a trained network itself, on the counted words."""
        if is_restricted(self._sampler):
            return prove_equivalent(model, self._specification, budget, ignore=(self._free,), seconds=seconds)
        return prove_equivalent(model, self._machine, budget, empty_word, seconds=seconds)

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
