"""The loop of `learn` for layers whose heads implement a machine together: the network is verified as a whole.

The network is evaluated on fresh words. If it makes no error on them, it is verified, and a counterexample joins the
words. In a network of many heads, those that are images of the target machine are trained alone as soon as they
separate its outputs: heads of other automata multiply the joint states and disturb the read-out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from typing import cast

import torch

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.learning.examples import FreshWords
from fsa2lrnn.learning.judging import EVERY_WORD, LearningTarget
from fsa2lrnn.learning.learning_run import LearnedCandidate, LearningRun, Record
from fsa2lrnn.learning.prune import CandidateMachine
from fsa2lrnn.learning.recipe import Recipe
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verdicts import Proved, Refuted, Undecided
from fsa2lrnn.verification.extraction import extract

_PAIRS = 100_000  # of states, up to which a network is verified during training
_MANY = 16  # heads above which some are made constant before the verification
_AFTER, _MORE = 0.5, 0.1  # seconds, or a share of the time limit, for the verification at the end


@torch.no_grad()
def without_heads(model: LRNN, heads: Iterable[int]) -> LRNN:
    """Return a copy of a network of one layer in which these heads are constant and not read."""
    copy = deepcopy(model)
    layer, readout = copy.recurrences[0], cast("Gate", copy.readout)
    parts = [layer.get_parameter("x0"), readout.weights.W1.T]
    parts += [part for _, gate in layer.gates for part in (gate.weights.W2, gate.weights.b2)]
    for part in parts:
        part.unflatten(0, (layer.n_heads, -1))[[*heads]] = 0
    return copy


@torch.no_grad()
def images(model: LRNN, machine: MooreMachine) -> tuple[tuple[int, ...], bool]:
    """Return the heads whose state is a function of the machine's state, and whether they determine all outputs."""
    tables, delta, start = switched(model), torch.tensor(machine.delta), machine.start
    x, order = {start: tables.x0}, [start]
    for q in order:
        for a, target in enumerate(delta[:, q].tolist()):
            if target not in x:
                x[target] = (tables.A[a] @ x[q].unsqueeze(-1)).squeeze(-1) + tables.v[a]
                order.append(target)
    states = torch.stack([x[q] for q in range(machine.n_states)])  # (n, H, b)
    after = torch.einsum("ahij,qhj->aqhi", tables.A, states) + tables.v[:, None]
    is_image = (after == states[delta]).all(-1).all(0).all(0)
    outputs: dict[tuple[float, ...], set[Hashable]] = {}
    for vector, output in zip(states[:, is_image].flatten(1).tolist(), machine.outputs, strict=True):
        outputs.setdefault(tuple(vector), set()).add(output)
    heads = tuple(is_image.nonzero().flatten().tolist())
    return heads, all(len(of_vector) == 1 for of_vector in outputs.values())


class WholeRun(LearningRun):
    """A run in which all heads together are the candidate, with the network's own read-out."""

    examples: FreshWords
    target: LearningTarget

    def __init__(self, recipe: Recipe, examples: FreshWords, target: LearningTarget, n_states: int) -> None:
        super().__init__(recipe, examples, target, n_states)
        self.verdict: Proved | Refuted | Undecided | None = None

    def _step(self, report: Callable[[Record], None] | None) -> LearnedCandidate | None:
        """Take one step; verify the network when it is due and makes no error on fresh words; return it if proved."""
        attempt = self.attempt
        loss = attempt.update(self.generator)
        self.steps += 1
        if not math.isfinite(loss):
            self.note("diverged")
            self.attempt = self._start(attempt.number + 1)
            return None
        is_settled = attempt.is_settled
        if is_settled or attempt.at.step % self.recipe.look == 0:
            wrong, labels = self._faults()
            record: Record = {
                "step": self.steps, "start": attempt.number, "block": attempt.block, "length": attempt.at.length,
                "loss": loss, "error": attempt.at.error, "faults": wrong / labels,
            }  # fmt: skip
            self.trail.append(record)
            if report is not None:
                report(record)
            if not wrong and (candidate := self._verified(labels)) is not None:
                return candidate
            if self._is_wide and attempt.at.rests == 0 and self.target.scope == EVERY_WORD:
                self._focus()
        if is_settled or attempt.is_stuck:
            self.note("settled without a proof" if is_settled else "stuck")
            self.attempt = self._start(attempt.number + 1)
        return None

    def verified(self) -> LearnedCandidate | None:
        """Return the network in its current state as a candidate if it is proved correct, else None."""
        wrong, labels = self._faults()
        return None if wrong else self._verified(labels)

    def _faults(self) -> tuple[int, int]:
        """Return the number of wrong labels on fresh words, and the number of labels."""
        batch = self.examples.evaluation_words(self.attempt.full_length, self.generator)
        with torch.no_grad():
            predicted = self.attempt.model(batch.tokens, empty_word=True).argmax(-1)
        counts = batch.labels != UNCOUNTED
        return int((predicted != batch.labels)[counts].sum()), int(counts.sum())

    @property
    def _is_wide(self) -> bool:
        return self.attempt.n_heads > _MANY

    def _focus(self) -> None:
        """Continue with the images of the target if they determine its outputs: train only the read-out, on them."""
        attempt, machine = self.attempt, self.target.specification
        heads, is_enough = images(attempt.model, machine)
        if is_enough:
            self.note("images", heads=len(heads))
            others = set(range(attempt.n_heads)) - set(heads)
            self.attempt = attempt.reading_out(without_heads(attempt.model, others))

    def _verified(self, labels: int) -> LearnedCandidate | None:
        """Return the candidate if the network is proved equal to the target; a counterexample joins the words."""
        # Many heads that have learned nothing multiply the joint states: such a network is verified without them.
        model = self._with_fewer_heads() if self._is_wide else self.attempt.model
        self.verdict = self.target.judge_network(model, _PAIRS, seconds=self.deadline)
        if isinstance(self.verdict, Proved):
            self.attempt.model = model
            return LearnedCandidate(self._candidate(0, labels), holds=True)
        if isinstance(self.verdict, Refuted):
            self.note("refuted", word=tuple(map(str, self.verdict.word)))
            self.examples.add(self.verdict.word)
            self.attempt.warm()
        return None

    def _with_fewer_heads(self) -> LRNN:
        """Return a copy of the network in which heads that no output of fresh words depends on are constant."""
        batch, model = self.examples.evaluation_words(self.attempt.full_length, self.generator), self.attempt.model
        counts, still = batch.labels != UNCOUNTED, 0
        for head in range(self.attempt.n_heads):
            candidate = without_heads(model, (head,))
            with torch.no_grad():
                predicted = candidate(batch.tokens, empty_word=True).argmax(-1)
            if torch.equal(predicted[counts], batch.labels[counts]):
                model, still = candidate, still + 1
        self.note("fewer heads", still=still)
        return model

    def _candidate(self, wrong: int, labels: int) -> CandidateMachine:
        """Return the target machine as the candidate of a network that is proved equivalent to it."""
        return CandidateMachine(tuple(range(self.attempt.n_heads)), self.target.specification, wrong, labels)

    def _end(self) -> LearnedCandidate | None:
        """Return the trained network, proved or with its extracted machine; None if that has too many states."""
        self.note("end of the budget")
        wrong, labels = self._faults()
        # The trained network is verified after the time limit, within a short limit of its own.
        deadline = NEVER if self.recipe.seconds is None else Deadline(max(_AFTER, _MORE * self.recipe.seconds))
        self.verdict = self.target.judge_network(self.attempt.model, _PAIRS, seconds=deadline)
        if isinstance(self.verdict, Proved):
            return LearnedCandidate(self._candidate(wrong, labels), holds=True)
        try:
            machine = extract(self.attempt.model, _PAIRS, seconds=deadline)
        except BudgetExceeded:
            return None
        return LearnedCandidate(self._candidate(wrong, labels)._replace(machine=machine), holds=False)
